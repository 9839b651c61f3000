/* console.h - what a sandbox's processes write to standard error: the last of it is kept. */
#pragma once

#include "loop.h"

#define CONSOLE_LINES_MAX 32u
#define CONSOLE_BYTES_MAX 4096u

struct console;

/* *ret_their_fd is the end to write to; the caller closes it. 0 or -errno. */
int console_new(struct loop *loop, struct console **ret_console, int *ret_their_fd);
/* At most CONSOLE_LINES_MAX lines and CONSOLE_BYTES_MAX bytes, valid UTF-8; borrowed until the
 * next call. */
const char *console_tail(struct console *console);
void console_free(struct console *console);
DEFINE_CLEANUP(struct console *, console_free)
