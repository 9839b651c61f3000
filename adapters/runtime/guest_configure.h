/* guest_configure.h - what a fresh guest is told of itself: time, randomness, identity,
 * network, environment (docs/agent-protocol.md, contract 5.1.3). */
#pragma once

#include "backend.h"

/* Fills *CONFIGURE, zeroed before, but for the time. ID names the machine; ENV is that of the
 * create, NETWORK may be NULL; with a network its local addresses in ENV become the gateway's.
 * 0, -ENOMEM, or -errno of getrandom(2); codec_free() releases it in any case. */
int guest_configure_fill(struct guest_configure *configure, const char *id,
                         const struct image *image, const struct env *env,
                         const struct machine_network *network);
/* Its random bytes alone. 0, -ENOMEM, or -errno of getrandom(2). */
int guest_configure_fill_seed(struct guest_configure *configure);
/* At the last moment. */
void guest_configure_set_time(struct guest_configure *configure);
