/* console.c - see console.h. */
#include "console.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "cleanup.h"
#include "utf8.h"

void console_append(struct console *console, const char *data, size_t size)
{
    if (size > CONSOLE_BYTES_MAX) {
        console->written += size - CONSOLE_BYTES_MAX;
        data += size - CONSOLE_BYTES_MAX;
        size = CONSOLE_BYTES_MAX;
    }
    for (size_t i = 0; i < size; i++)
        console->ring[(console->written + i) % CONSOLE_BYTES_MAX] = data[i];
    console->written += size;
}

/* What is kept, in order; control characters are left out. */
static size_t console_unroll(const struct console *console, char *ret_text)
{
    size_t kept = console->written < CONSOLE_BYTES_MAX ? console->written : CONSOLE_BYTES_MAX;
    size_t size = 0;

    for (size_t i = console->written - kept; i < console->written; i++) {
        unsigned char byte = (unsigned char)console->ring[i % CONSOLE_BYTES_MAX];

        if ((byte >= ' ' && byte != 0x7f) || byte == '\n' || byte == '\t')
            ret_text[size++] = (char)byte;
    }
    while (size > 0 && ret_text[size - 1] == '\n')
        size--;
    return size;
}

static size_t last_lines(const char *text, size_t size, unsigned lines)
{
    size_t at = size;

    while (at > 0 && (text[at - 1] != '\n' || --lines > 0))
        at--;
    return at;
}

void console_tail(const struct console *console, char ret_text[CONSOLE_BYTES_MAX + 1])
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    char raw[CONSOLE_BYTES_MAX];
    size_t size = console_unroll(console, raw);
    size_t at = last_lines(raw, size, CONSOLE_LINES_MAX);

    ret_text[0] = 0;
    if (utf8_repair(&text, raw + at, size - at) < 0)
        return;
    at = 0;
    if (text.size > CONSOLE_BYTES_MAX) /* a replacement takes more room than what it replaces */
        at = text.size - CONSOLE_BYTES_MAX;
    while (at < text.size && (text.data[at] & 0xc0) == 0x80)
        at++;
    if (text.size > at)
        memcpy(ret_text, text.data + at, text.size - at);
    ret_text[text.size - at] = 0;
}

void console_last_line(const struct console *console, char *ret_text, size_t size)
{
    char text[CONSOLE_BYTES_MAX + 1];
    const char *newline;

    console_tail(console, text);
    newline = strrchr(text, '\n');
    (void)snprintf(ret_text, size, "%s", newline ? newline + 1 : text); /* cut is fine */
}
