/* However a stream of frames is cut into pieces, the same events come, and no message is over
 * the limit. The first byte chooses role and discarding. */
#include <stdlib.h>

#include "utf8.h"
#include "websocket.h"

#define LIMIT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t mix(uint64_t digest, const struct websocket_event *event)
{
    if (event->size > LIMIT || (event->is_text && !utf8_valid(event->data, event->size)))
        abort();
    for (size_t i = 0; i < event->size; i++)
        digest = digest * 31 + event->data[i];
    return ((digest * 31 + event->kind) * 31 + event->code) * 31 + event->size;
}

/* A digest of all events, so that two runs can be compared. */
static uint64_t decode(uint8_t flags, const uint8_t *data, size_t size, size_t piece)
{
    struct websocket ws;
    uint64_t digest = 0;

    websocket_init(&ws, flags & 1 ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER, LIMIT);
    ws.discards = flags & 2;
    for (size_t at = 0; at < size; at += piece) {
        size_t left = size - at < piece ? size - at : piece;
        const uint8_t *input = data + at;
        struct websocket_event event;

        for (;;) {
            if (websocket_next(&ws, &input, &left, &event) < 0 ||
                websocket_held_bytes(&ws) > LIMIT)
                abort();
            if (event.kind == WEBSOCKET_EVENT_NONE)
                break;
            digest = mix(digest, &event);
        }
    }
    websocket_done(&ws);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (decode(data[0], data + 1, size - 1, size) != decode(data[0], data + 1, size - 1, 1))
        abort();
    return 0;
}
