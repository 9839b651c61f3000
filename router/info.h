/* info.h - sandbox::adapter::info, the router's own answer (contract 13).
 *
 * It never fails with an S-code. The adapter has INFO_TIMEOUT_MS for its part. */
#pragma once

#include "route.h"

/* As route_call(). */
struct pending *info_call(struct router *router, struct caller *caller,
                          const struct call *call);
