/* whole_input.h - our stdin to its end, for an adapter that takes it only as a whole. */
#pragma once

#include "client.h"

/* Appends it. EXIT_CODE_DONE, or the exit code after saying why: it is larger than
 * LIMIT_INLINE_BYTES, does not end within WAIT_MS, cannot be read, or a signal came. */
int whole_input_read(struct client *client, uint64_t wait_ms, struct buf *to);
