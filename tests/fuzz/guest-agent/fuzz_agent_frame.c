/* fuzz_agent_frame.c - frames of the guest link: whatever decodes without a map encodes to the
 * same again; bodies go on to the tables. */
#include <stdlib.h>
#include <string.h>

#include "agent_frame.h"
#include "codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

static bool inside(struct span span, const uint8_t *data, size_t size)
{
    const uint8_t *start = (const uint8_t *)span.data;

    return !start || (start >= data && start + span.size <= data + size);
}

static void decode_request(const struct agent_frame *frame)
{
    const struct guest_operation *operation = guest_operation_find(frame->text.data,
                                                                   frame->text.size);
    void *request;

    if (!operation)
        return;
    request = calloc(1, operation->request->size);
    need(request != NULL);
    if (codec_decode_msgpack(operation->request, (const uint8_t *)frame->body.data,
                             frame->body.size, request) == 0)
        codec_free(operation->request, request);
    free(request);
}

static void encode_again(const struct agent_frame *frame)
{
    struct agent_frame again;
    struct buf out = { 0 };
    const char *reason;

    need(agent_frame_encode(frame, &out) == 0);
    need(agent_frame_size(out.data) == out.size - AGENT_FRAME_PREFIX_BYTES);
    need(agent_frame_decode(out.data + AGENT_FRAME_PREFIX_BYTES,
                            out.size - AGENT_FRAME_PREFIX_BYTES, &again, &reason) == 0);
    need(again.kind == frame->kind && again.id == frame->id && again.stream == frame->stream &&
         again.credit == frame->credit && again.body.size == frame->body.size &&
         again.slot == frame->slot && again.size == frame->size &&
         again.slots == frame->slots && again.idle == frame->idle);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent_frame frame;
    const char *reason = NULL;

    if (agent_frame_decode(data, size, &frame, &reason) < 0) {
        need(reason != NULL);
        return 0;
    }
    need(inside(frame.text, data, size) && inside(frame.body, data, size));
    switch (frame.kind) {
    case AGENT_FRAME_CALL:
        decode_request(&frame);
        break;
    case AGENT_FRAME_DATA:
    case AGENT_FRAME_CREDIT:
    case AGENT_FRAME_END:
    case AGENT_FRAME_CANCEL:
    case AGENT_FRAME_PING:
    case AGENT_FRAME_PONG:
    case AGENT_FRAME_SLOT:
    case AGENT_FRAME_RETURN:
        encode_again(&frame);
        break;
    default:
        break;
    }
    return 0;
}
