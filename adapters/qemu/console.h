/* console.h - the end of what a machine wrote: its serial console and QEMU's own words. */
#pragma once

#include <stddef.h>

#define CONSOLE_LINES_MAX 32u
#define CONSOLE_BYTES_MAX 4096u

/* Zero-initialised is empty. */
struct console {
    char ring[CONSOLE_BYTES_MAX];
    size_t written; /* in all */
};

void console_append(struct console *console, const char *data, size_t size);

/* The last CONSOLE_LINES_MAX lines as valid UTF-8 without control characters but newline, in at
 * most CONSOLE_BYTES_MAX bytes, NUL-terminated. */
void console_tail(const struct console *console, char ret_text[CONSOLE_BYTES_MAX + 1]);

/* The last line that is not empty; "" when there is none. */
void console_last_line(const struct console *console, char *ret_text, size_t size);
