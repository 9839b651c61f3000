/* lines.c - see lines.h. */
#include "lines.h"

#include <errno.h>
#include <string.h>

#define READ_BYTES (64u * 1024)

void lines_init(struct lines *lines, int fd)
{
    *lines = (struct lines){ .fd = fd };
}

/* Reads more behind what is there. 0 or -errno. */
static int lines_fill(struct lines *lines)
{
    uint8_t *room;
    ssize_t size;

    if (lines->at > 0) {
        lines->offset += lines->at;
        buf_consume(&lines->data, lines->at);
        lines->at = 0;
    }
    room = buf_reserve(&lines->data, READ_BYTES);
    if (!room)
        return -ENOMEM;
    do {
        size = read(lines->fd, room, READ_BYTES);
    } while (size < 0 && errno == EINTR);
    if (size < 0)
        return -errno;
    lines->ended = size == 0;
    lines->data.size += (size_t)size;
    return 0;
}

int lines_next(struct lines *lines, struct line *ret_line)
{
    size_t searched = 0; /* of the line, no end was found in it */

    for (;;) {
        /* Nothing is held before the first read, and NULL takes no offset. */
        const char *text = lines->data.data ? (const char *)lines->data.data + lines->at : "";
        const size_t size = lines->data.size - lines->at;
        const char *end = size > searched ? memchr(text + searched, '\n', size - searched)
                                          : NULL;
        const size_t line_size = end ? (size_t)(end - text) : size;
        int result;

        if (line_size > LINE_BYTES_MAX)
            return -EFBIG;
        if (end || (lines->ended && size > 0)) {
            *ret_line = (struct line){
                .text = text,
                .size = end ? line_size + 1 : size,
                .offset = lines->offset + lines->at,
            };
            lines->at += ret_line->size;
            return 1;
        }
        if (lines->ended)
            return 0;
        searched = size;
        result = lines_fill(lines);
        if (result < 0)
            return result;
    }
}

int lines_begin_with_nul(struct lines *lines, size_t size)
{
    while (lines->data.size < size && !lines->ended) {
        int result = lines_fill(lines);

        if (result < 0)
            return result;
    }
    if (size > lines->data.size)
        size = lines->data.size;
    return size > 0 && memchr(lines->data.data, 0, size) != NULL;
}

void lines_done(struct lines *lines)
{
    buf_done(&lines->data);
}
