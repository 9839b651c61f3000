/* frames.c - see frames.h. */
#include "frames.h"

#include <errno.h>

#include "codec.h"

int frames_map(struct buf *to, enum agent_frame_kind kind, uint64_t id, const struct type *type,
               const void *value)
{
    const size_t before = to->size;
    size_t start;
    int result = agent_frame_begin(kind, id, NULL, to, &start);

    if (result == 0)
        result = codec_encode_msgpack(type, value, to);
    if (result == 0)
        result = agent_frame_finish(to, start);
    if (result < 0)
        to->size = before;
    return result;
}

int frames_error(struct buf *to, uint64_t id, const struct sandbox_error *err)
{
    struct guest_error body = {
        .has_code = true,
        .code = (char *)(uintptr_t)error_info_get(err->code)->code,
        .has_message = true,
        .message = (char *)(uintptr_t)err->message,
        .has_fix_parents = true,
    };

    for (unsigned i = 0; i < err->fix_count; i++)
        body.fix_parents |= strcmp(err->fix[i].key, "parents") == 0;
    return frames_map(to, AGENT_FRAME_ERROR, id, &type_guest_error, &body);
}

int frames_data(struct buf *to, uint64_t id, unsigned stream, const void *data, size_t size)
{
    const struct agent_frame frame = {
        .kind = AGENT_FRAME_DATA,
        .id = id,
        .stream = stream,
        .body = { .data = data, .size = size },
    };

    return agent_frame_encode(&frame, to);
}

int frames_slot(struct buf *to, uint64_t id, unsigned stream, unsigned slot, size_t size)
{
    const struct agent_frame frame = {
        .kind = AGENT_FRAME_SLOT,
        .id = id,
        .stream = stream,
        .slot = slot,
        .size = (uint32_t)size,
    };

    return agent_frame_encode(&frame, to);
}

int frames_return(struct buf *to, uint32_t slots)
{
    const struct agent_frame frame = { .kind = AGENT_FRAME_RETURN, .slots = slots };

    return agent_frame_encode(&frame, to);
}

int frames_credit(struct buf *to, uint64_t id, unsigned stream, uint64_t size)
{
    const struct agent_frame frame = {
        .kind = AGENT_FRAME_CREDIT,
        .id = id,
        .stream = stream,
        .credit = size,
    };

    return agent_frame_encode(&frame, to);
}

int frames_end(struct buf *to, uint64_t id, unsigned stream, const char *reason)
{
    const struct agent_frame frame = {
        .kind = AGENT_FRAME_END,
        .id = id,
        .stream = stream,
        .text = span_of_text(reason),
    };

    return agent_frame_encode(&frame, to);
}

int frames_pong(struct buf *to, uint64_t id)
{
    const struct agent_frame frame = { .kind = AGENT_FRAME_PONG, .id = id };

    return agent_frame_encode(&frame, to);
}
