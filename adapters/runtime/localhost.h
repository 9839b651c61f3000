/* localhost.h - what the host's loopback is called inside a guest (contract 5.1.3). */
#pragma once

/* VALUE with GATEWAY for the host in each `://localhost:` and `://127.0.0.1:`; the caller
 * frees. NULL: no memory. */
char *localhost_rewrite(const char *value, const char *gateway);
