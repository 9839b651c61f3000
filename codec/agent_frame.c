/* agent_frame.c - see agent_frame.h. */
#include "agent_frame.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "pack.h"

/* Elements of a frame by kind, its kind and id included. */
static const uint8_t element_counts[] = {
    [AGENT_FRAME_HELLO] = 3,  [AGENT_FRAME_CONFIGURE] = 3, [AGENT_FRAME_READY] = 3,
    [AGENT_FRAME_CALL] = 4,   [AGENT_FRAME_HEAD] = 3,      [AGENT_FRAME_REPLY] = 3,
    [AGENT_FRAME_ERROR] = 3,  [AGENT_FRAME_CANCEL] = 2,    [AGENT_FRAME_DATA] = 4,
    [AGENT_FRAME_CREDIT] = 4, [AGENT_FRAME_END] = 4,       [AGENT_FRAME_PING] = 2,
    [AGENT_FRAME_PONG] = 2,   [AGENT_FRAME_SLOT] = 5,      [AGENT_FRAME_RETURN] = 4,
};
static_assert(ARRAY_SIZE(element_counts) == AGENT_FRAME_KIND_MAX, "a count for each kind");

/* Decoding. */

static bool read_kind_of(struct pack_reader *reader, enum pack_kind kind,
                         struct pack_item *ret_item)
{
    return pack_read(reader, ret_item) == 0 && ret_item->kind == kind;
}

static bool read_uint(struct pack_reader *reader, uint64_t *ret_value)
{
    struct pack_item item;

    if (!read_kind_of(reader, PACK_UINT, &item))
        return false;
    *ret_value = item.number;
    return true;
}

static bool read_text(struct pack_reader *reader, struct span *ret_text)
{
    struct pack_item item;

    if (!read_kind_of(reader, PACK_TEXT, &item))
        return false;
    *ret_text = item.span;
    return true;
}

static bool read_end_text(struct pack_reader *reader, struct span *ret_text)
{
    struct pack_item item;

    if (!pack_at_nil(reader))
        return read_text(reader, ret_text);
    *ret_text = (struct span){ 0 };
    return pack_read(reader, &item) == 0;
}

static bool read_data(struct pack_reader *reader, struct span *ret_bytes)
{
    struct pack_item item;

    if (!read_kind_of(reader, PACK_BYTES, &item))
        return false;
    *ret_bytes = item.span;
    return item.span.size > 0 && item.span.size <= AGENT_DATA_MAX_BYTES;
}

static bool read_map(struct pack_reader *reader, struct span *ret_map)
{
    struct pack_reader map = *reader, head = *reader;
    struct pack_item item;

    if (!read_kind_of(&head, PACK_MAP, &item) || pack_skip(reader) < 0)
        return false;
    ret_map->data = (const char *)map.at;
    ret_map->size = (size_t)(reader->at - map.at);
    return true;
}

static bool read_stream(struct pack_reader *reader, unsigned *ret_stream)
{
    uint64_t stream;

    if (!read_uint(reader, &stream) || stream >= AGENT_STREAMS)
        return false;
    *ret_stream = (unsigned)stream;
    return true;
}

static bool read_slot(struct pack_reader *reader, struct agent_frame *frame)
{
    uint64_t slot, size;

    if (!read_uint(reader, &slot) || slot >= AGENT_MAILBOX_SLOTS || !read_uint(reader, &size) ||
        size == 0 || size > AGENT_MAILBOX_SLOT_BYTES)
        return false;
    frame->slot = (uint32_t)slot;
    frame->size = (uint32_t)size;
    return true;
}

static bool read_return(struct pack_reader *reader, struct agent_frame *frame)
{
    uint64_t slots, idle;

    if (!read_uint(reader, &slots) || slots >> AGENT_MAILBOX_SLOTS != 0 ||
        !read_uint(reader, &idle))
        return false;
    frame->slots = (uint32_t)slots;
    frame->idle = idle != 0;
    return true;
}

static bool read_elements(struct pack_reader *reader, struct agent_frame *frame)
{
    switch (frame->kind) {
    case AGENT_FRAME_CALL:
        return read_text(reader, &frame->text) && read_map(reader, &frame->body);
    case AGENT_FRAME_DATA:
        return read_stream(reader, &frame->stream) && read_data(reader, &frame->body);
    case AGENT_FRAME_CREDIT:
        return read_stream(reader, &frame->stream) && read_uint(reader, &frame->credit);
    case AGENT_FRAME_END:
        return read_stream(reader, &frame->stream) && read_end_text(reader, &frame->text);
    case AGENT_FRAME_SLOT:
        return read_stream(reader, &frame->stream) && read_slot(reader, frame);
    case AGENT_FRAME_RETURN:
        return read_return(reader, frame);
    case AGENT_FRAME_CANCEL:
    case AGENT_FRAME_PING:
    case AGENT_FRAME_PONG:
        return true;
    default:
        return read_map(reader, &frame->body);
    }
}

static int malformed(const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return -EPROTO;
}

int agent_frame_decode(const uint8_t *data, size_t size, struct agent_frame *ret_frame,
                       const char **ret_reason)
{
    struct pack_reader reader = pack_reader(data, size);
    struct agent_frame frame = { 0 };
    struct pack_item array;
    uint64_t kind;

    if (!read_kind_of(&reader, PACK_ARRAY, &array) || array.count < 2 ||
        !read_uint(&reader, &kind) || !read_uint(&reader, &frame.id))
        return malformed("a frame that is no array of kind and id", ret_reason);
    if (kind >= AGENT_FRAME_KIND_MAX)
        return malformed("a frame of an unknown kind", ret_reason);
    frame.kind = (enum agent_frame_kind)kind;
    if (array.count < element_counts[kind] || !read_elements(&reader, &frame))
        return malformed("a frame whose elements are not those of its kind", ret_reason);
    for (uint32_t i = element_counts[kind]; i < array.count; i++) {
        if (pack_skip(&reader) < 0)
            return malformed("a frame with fewer elements than it claims", ret_reason);
    }
    if (reader.at != reader.end)
        return malformed("a frame with bytes behind its array", ret_reason);
    *ret_frame = frame;
    return 0;
}

size_t agent_frame_size(const uint8_t *data)
{
    return (size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 |
           (size_t)data[3] << 24;
}

/* Encoding: the prefix is left open, then filled in. */

static void put_prefix(uint8_t *at, size_t size)
{
    at[0] = (uint8_t)size;
    at[1] = (uint8_t)(size >> 8);
    at[2] = (uint8_t)(size >> 16);
    at[3] = (uint8_t)(size >> 24);
}

static int put_elements(const struct agent_frame *frame, struct buf *to)
{
    int result;

    switch (frame->kind) {
    case AGENT_FRAME_DATA:
        result = pack_uint(to, frame->stream);
        return result < 0 ? result : pack_bytes(to, frame->body.data, frame->body.size);
    case AGENT_FRAME_CREDIT:
        result = pack_uint(to, frame->stream);
        return result < 0 ? result : pack_uint(to, frame->credit);
    case AGENT_FRAME_END:
        result = pack_uint(to, frame->stream);
        if (result < 0)
            return result;
        return frame->text.data ? pack_text(to, frame->text.data, frame->text.size)
                                : pack_nil(to);
    case AGENT_FRAME_SLOT:
        result = pack_uint(to, frame->stream);
        if (result == 0)
            result = pack_uint(to, frame->slot);
        return result < 0 ? result : pack_uint(to, frame->size);
    case AGENT_FRAME_RETURN:
        result = pack_uint(to, frame->slots);
        return result < 0 ? result : pack_uint(to, frame->idle);
    default:
        return 0;
    }
}

int agent_frame_begin(enum agent_frame_kind kind, uint64_t id, const char *operation,
                      struct buf *to, size_t *ret_start)
{
    static const uint8_t open_prefix[AGENT_FRAME_PREFIX_BYTES];
    int result;

    *ret_start = to->size;
    result = buf_append(to, open_prefix, sizeof(open_prefix));
    if (result == 0)
        result = pack_array(to, element_counts[kind]);
    if (result == 0)
        result = pack_uint(to, (uint64_t)kind);
    if (result == 0)
        result = pack_uint(to, id);
    if (result == 0 && operation)
        result = pack_text(to, operation, strlen(operation));
    return result;
}

int agent_frame_finish(struct buf *to, size_t start)
{
    size_t size = to->size - start - AGENT_FRAME_PREFIX_BYTES;

    if (size > AGENT_FRAME_MAX_BYTES)
        return -EMSGSIZE;
    put_prefix(to->data + start, size);
    return 0;
}

int agent_frame_data_begin(uint64_t id, unsigned stream, size_t size, struct buf *to,
                           size_t *ret_start)
{
    uint8_t head[PACK_HEAD_MAX];
    size_t start;
    int result = agent_frame_begin(AGENT_FRAME_DATA, id, NULL, to, &start);

    if (result == 0)
        result = pack_uint(to, stream);
    if (result == 0)
        result = buf_append(to, head, pack_bytes32_head(head, 0));
    if (result == 0)
        result = buf_ensure(to, size);
    if (result < 0)
        to->size = start;
    *ret_start = start;
    return result;
}

void agent_frame_data_finish(struct buf *to, size_t start, size_t size)
{
    uint8_t head[PACK_HEAD_MAX];
    size_t head_size = pack_bytes32_head(head, (uint32_t)size);

    assert(size <= AGENT_DATA_MAX_BYTES);
    if (size == 0) {
        to->size = start;
        return;
    }
    memcpy(to->data + to->size - head_size, head, head_size);
    to->size += size;
    put_prefix(to->data + start, to->size - start - AGENT_FRAME_PREFIX_BYTES);
}

int agent_frame_encode(const struct agent_frame *frame, struct buf *to)
{
    size_t start = to->size;
    int result = agent_frame_begin(frame->kind, frame->id, NULL, to, &start);

    if (result == 0)
        result = put_elements(frame, to);
    if (result == 0)
        result = agent_frame_finish(to, start);
    if (result < 0)
        to->size = start;
    return result;
}
