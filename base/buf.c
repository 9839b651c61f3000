/* buf.c - see buf.h. Growth doubles, within the limit, and keeps one byte for buf_text(). */
#include "buf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BUF_SMALLEST 64

/* Room for SIZE more bytes plus the NUL of the text view. */
int buf_ensure(struct buf *buf, size_t size)
{
    size_t needed;
    size_t capacity = buf->capacity < BUF_SMALLEST ? BUF_SMALLEST : buf->capacity;
    uint8_t *data;

    if (__builtin_add_overflow(buf->size, size, &needed) || needed >= SIZE_MAX / 2)
        return -ENOBUFS;
    if (buf->limit > 0 && needed > buf->limit)
        return -ENOBUFS;
    if (needed < buf->capacity)
        return 0;
    while (capacity <= needed)
        capacity *= 2;
    if (buf->limit > 0 && capacity > buf->limit + 1)
        capacity = buf->limit + 1;
    data = realloc(buf->data, capacity);
    if (!data)
        return -ENOMEM;
    buf->data = data;
    buf->capacity = capacity;
    return 0;
}

uint8_t *buf_reserve(struct buf *buf, size_t size)
{
    return buf_ensure(buf, size) == 0 ? buf->data + buf->size : NULL;
}

int buf_append(struct buf *buf, const void *data, size_t size)
{
    int result = buf_ensure(buf, size);

    if (result < 0)
        return result;
    if (size > 0)
        memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    return 0;
}

int buf_append_text(struct buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

int buf_append_byte(struct buf *buf, uint8_t byte)
{
    return buf_append(buf, &byte, 1);
}

int buf_vprintf(struct buf *buf, const char *format, va_list arguments)
{
    va_list again;
    int size, result;

    va_copy(again, arguments);
    size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (size < 0)
        return -EINVAL;
    result = buf_ensure(buf, (size_t)size);
    if (result < 0)
        return result;
    (void)vsnprintf((char *)buf->data + buf->size, (size_t)size + 1, format, arguments);
    buf->size += (size_t)size;
    return 0;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
    va_list arguments;
    int result;

    va_start(arguments, format);
    result = buf_vprintf(buf, format, arguments);
    va_end(arguments);
    return result;
}

void buf_consume(struct buf *buf, size_t size)
{
    if (size >= buf->size) {
        buf->size = 0;
        return;
    }
    if (size > 0)
        memmove(buf->data, buf->data + size, buf->size - size);
    buf->size -= size;
}

void buf_clear(struct buf *buf)
{
    buf->size = 0;
}

const char *buf_text(struct buf *buf)
{
    if (buf_ensure(buf, 0) < 0)
        return NULL;
    buf->data[buf->size] = 0;
    return (const char *)buf->data;
}

uint8_t *buf_take(struct buf *buf, size_t *ret_size)
{
    if (!buf_text(buf))
        return NULL;
    if (ret_size)
        *ret_size = buf->size;
    buf->size = 0;
    buf->capacity = 0;
    return take_ptr(buf->data);
}

void buf_done(struct buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->size = 0;
    buf->capacity = 0;
}
