/* capture.c - see capture.h.
 *
 * A cut may go through a character. Only the bytes on its other side show whether there is one,
 * so a few more than asked for are kept at both cuts. */
#include "capture.h"

#include <errno.h>

#include "utf8.h"

#define BEYOND_BYTES 3u /* of a character that begins with its first byte before a cut */
#define KEEP_BYTES (CAPTURE_TAIL_BYTES + BEYOND_BYTES)

void capture_init(struct capture *capture, size_t cap)
{
    *capture = (struct capture){ .cap = cap };
}

void capture_done(struct capture *capture)
{
    buf_done(&capture->head);
    buf_done(&capture->tail);
}

static void add_to_tail(struct capture *capture, const uint8_t *data, size_t size)
{
    if (size > KEEP_BYTES) {
        data += size - KEEP_BYTES;
        size = KEEP_BYTES;
        buf_clear(&capture->tail);
    }
    if (capture->tail.size + size > 2 * KEEP_BYTES)
        buf_consume(&capture->tail, capture->tail.size + size - KEEP_BYTES);
    if (buf_append(&capture->tail, data, size) < 0)
        buf_clear(&capture->tail);
}

void capture_add(struct capture *capture, const uint8_t *data, size_t size)
{
    size_t room = capture->cap + BEYOND_BYTES - capture->head.size;
    size_t first = size < room ? size : room;

    capture->total += size;
    if (buf_append(&capture->head, data, first) < 0) {
        capture->cap = capture->head.size;
        return;
    }
    if (size > first)
        add_to_tail(capture, data + first, size - first);
}

bool capture_truncated(const struct capture *capture)
{
    return capture->total > capture->cap;
}

/* The valid character across AT, if there is one: where it begins and ends. Else both are AT.
 */
static void character_across(const uint8_t *data, size_t size, size_t at, size_t *ret_start,
                             size_t *ret_end)
{
    *ret_start = at;
    *ret_end = at;
    for (size_t back = 1; back <= BEYOND_BYTES && back <= at; back++) {
        size_t start = at - back;
        size_t length;
        uint32_t code_point;

        if ((data[start] & 0xc0) == 0x80)
            continue;
        length = utf8_decode(data + start, size - start, &code_point, NULL);
        if (length > back) {
            *ret_start = start;
            *ret_end = start + length;
        }
        return;
    }
}

int capture_text(const struct capture *capture, struct buf *to)
{
    size_t start, end;

    if (!capture_truncated(capture))
        return utf8_repair(to, capture->head.data, capture->head.size);
    character_across(capture->head.data, capture->head.size, capture->cap, &start, &end);
    return utf8_repair(to, capture->head.data, start);
}

/* The last KEEP_BYTES of the stream, or all of it. */
static int join_end(const struct capture *capture, struct buf *to)
{
    size_t wanted = KEEP_BYTES > capture->tail.size ? KEEP_BYTES - capture->tail.size : 0;
    size_t from_head = wanted < capture->head.size ? wanted : capture->head.size;

    if (from_head > 0 &&
        buf_append(to, capture->head.data + (capture->head.size - from_head), from_head) < 0)
        return -ENOMEM;
    return buf_append(to, capture->tail.data, capture->tail.size);
}

int capture_tail_text(const struct capture *capture, struct buf *to, bool *ret_truncated)
{
    _cleanup_(buf_done)
    struct buf end = { 0 };
    size_t cut, character, from;
    int result = join_end(capture, &end);

    *ret_truncated = capture->total > CAPTURE_TAIL_BYTES;
    if (result < 0 || end.size == 0)
        return result;
    cut = end.size > CAPTURE_TAIL_BYTES ? end.size - CAPTURE_TAIL_BYTES : 0;
    character_across(end.data, end.size, cut, &character, &from);
    return utf8_repair(to, end.data + from, end.size - from);
}

struct error_partial *capture_partial(const struct capture captures[2])
{
    struct error_partial *partial = calloc(1, sizeof(*partial));

    if (!partial)
        return NULL;
    if (capture_tail_text(&captures[0], &partial->stdout_text, &partial->stdout_truncated) < 0)
        buf_clear(&partial->stdout_text);
    if (capture_tail_text(&captures[1], &partial->stderr_text, &partial->stderr_truncated) < 0)
        buf_clear(&partial->stderr_text);
    return partial;
}
