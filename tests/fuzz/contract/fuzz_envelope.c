/* A message that is decoded can be written again, and is then the same to the decoder; its
 * spans lie inside it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool condition)
{
    if (!condition)
        abort();
}

static void check_inside(struct span span, const uint8_t *data, size_t size)
{
    const uint8_t *start = (const uint8_t *)span.data;

    if (span.data)
        need(start >= data && span.size <= size && start + span.size <= data + size);
}

static void check_spans(const struct envelope *envelope, const uint8_t *data, size_t size)
{
    const struct span spans[] = {
        envelope->body,       envelope->operation, envelope->traceparent, envelope->channel_id,
        envelope->access_key, envelope->code,      envelope->message,     envelope->role,
        envelope->name,       envelope->version,   envelope->instance,    envelope->docs_base
    };

    for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
        check_inside(spans[i], data, size);
    for (unsigned i = 0; i < envelope->feature_count; i++)
        check_inside(envelope->features[i], data, size);
}

static void check_again(const struct envelope *envelope)
{
    struct envelope again;
    struct buf first = { 0 }, second = { 0 };
    const char *reason;

    need(envelope_encode(envelope, &first) == 0);
    need(envelope_decode(first.data, first.size, &again, &reason) == 0);
    need(envelope_set_id(first.data, first.size, again.id) == 0);
    need(envelope_encode(&again, &second) == 0);
    need(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    buf_done(&first);
    buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct envelope envelope;
    enum envelope_kind kind;
    const char *reason = NULL;
    uint64_t id;
    int peeked = envelope_peek(data, size, &kind, &id);
    int result = envelope_decode(data, size, &envelope, &reason);

    if (result < 0) {
        need(reason && (result == -EPROTO || (result == -ENOTSUP && peeked == -ENOTSUP)));
        return 0;
    }
    need(peeked == 0 && kind == envelope.kind && id == envelope.id);
    check_spans(&envelope, data, size);
    check_again(&envelope);
    return 0;
}
