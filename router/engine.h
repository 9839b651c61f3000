/* engine.h - what the router serves itself: engine::channels::create (contract 9.1).
 *
 * For callers and adapters alike. */
#pragma once

#include "refusal.h"

/* Fills RET with the reply or the error; refusal_done() releases it. */
void engine_channels_create(struct router *router, struct span body,
                            struct refusal *ret_refusal);
