/* payload_input.h - a payload that does not stand on the command line, where one word has room
 * for 128 KiB: `@FILE`, and `-` or `@-` for stdin. No JSON is or begins like these. */
#pragma once

#include "client.h"

/* What fits in a message to the router (16 MiB) beside what is around it. */
#define PAYLOAD_INPUT_MAX_BYTES ((16u * 1024 - 64) * 1024)

bool payload_input_is(const char *json);
/* Appends it. EXIT_CODE_DONE, or the exit code after saying why: it cannot be read, is larger
 * than the limit, does not end within WAIT_MS, or a signal came. */
int payload_input_read(struct client *client, const char *json, uint64_t wait_ms,
                       struct buf *to);
