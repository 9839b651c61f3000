/* rehearsal.h - a guest does once, for nobody, what it will be asked for: its files are in
 * memory then and, where code is translated, its code is translated.
 *
 * It is configured with names that the real CONFIGURE replaces, and runs interpreters that do
 * nothing. Nothing of it goes on afterwards (docs/agent-protocol.md). */
#pragma once

#include <stdbool.h>

#include "loop.h"

struct rehearsal;

/* Other steps, another text: other templates. */
#define REHEARSAL_RECIPE "file and programs, 2"

/* How much of it: CONFIGURE alone, or the interpreters of `run` as well. */
enum rehearsal_extent { REHEARSAL_CONFIGURE, REHEARSAL_PROGRAMS, REHEARSAL_EXTENT_MAX };

/* Once, never from inside rehearsal_new(); ERROR (borrowed) NULL: done. The rehearsal may be
 * freed in it. */
typedef void (*rehearsal_done_fn)(void *ctx, const char *error);

/* AGENT_FD is borrowed: the socket of an agent whose HELLO waits in it. Afterwards it is as if
 * HELLO had been read and nothing else said. An agent that knows no rehearsal is left as it
 * is. 0 or -errno. */
int rehearsal_new(struct loop *loop, int agent_fd, enum rehearsal_extent extent,
                  rehearsal_done_fn done, void *ctx, struct rehearsal **ret_rehearsal);
void rehearsal_free(struct rehearsal *rehearsal);
