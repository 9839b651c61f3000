/* negotiate.h - a hello against this router's contract: fits, differs or malformed
 * (contract 2.1).
 *
 * Pure: it looks at the message alone. The verdict is taken once for each connection and kept.
 */
#pragma once

#include "envelope.h"
#include "router_limits.h"

enum verdict {
    VERDICT_FITS,
    VERDICT_MAJOR_DIFFERS, /* parked: adapter::info and nothing else */
    VERDICT_MALFORMED,     /* the connection is closed */
    VERDICT_MAX
};

enum peer_role { PEER_ROLE_NONE, PEER_ROLE_CALLER, PEER_ROLE_ADAPTER };

/* *ret_reason: static text for the log, only with VERDICT_MALFORMED. */
enum verdict negotiate(const struct envelope *hello, enum peer_role *ret_role,
                       const char **ret_reason);
