/* buf.h - a growing run of bytes with a limit.
 *
 * Zero-initialised is empty and usable; buf_done() releases it. Appending past the limit (0: no
 * limit) changes nothing and gives -ENOBUFS; the buffer stays usable. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"

struct buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t limit;
};

/* All appends: 0, -ENOMEM, or -ENOBUFS. */
int buf_append(struct buf *buf, const void *data, size_t size);
int buf_append_text(struct buf *buf, const char *text);
int buf_append_byte(struct buf *buf, uint8_t byte);
int buf_printf(struct buf *buf, const char *format, ...) _printf_(2, 3);
int buf_vprintf(struct buf *buf, const char *format, va_list arguments) _printf_(2, 0);

/* Makes room for SIZE more bytes and returns where they go; the caller adds what it wrote to
 * buf->size. NULL: no memory or over the limit. */
uint8_t *buf_reserve(struct buf *buf, size_t size);

/* The same as 0, -ENOMEM or -ENOBUFS: the room is at data + size. */
int buf_ensure(struct buf *buf, size_t size);

/* Drops the first SIZE bytes. */
void buf_consume(struct buf *buf, size_t size);
void buf_clear(struct buf *buf);

/* Text view: terminates the bytes with a NUL that is not counted. NULL: no memory. */
const char *buf_text(struct buf *buf);

/* Moves the bytes out; the buffer is empty afterwards. NUL-terminated beyond *ret_size (may be
 * NULL). NULL: no memory, nothing moved. The caller frees. */
uint8_t *buf_take(struct buf *buf, size_t *ret_size);

void buf_done(struct buf *buf);
