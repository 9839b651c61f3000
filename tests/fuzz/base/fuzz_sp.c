/* fuzz_sp.c - what a peer may say, torn anywhere, behind pauses. The stream is this file's: it
 * gives the input in chunks, so that a run needs neither nng nor threads. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sp.h"

#define MESSAGE_LIMIT 70000u

struct stream {
    const struct stream_events *events;
    void *ctx;
    bool paused;
};

static struct stream the_stream;
static struct sp *the_sp;
static size_t message_bytes, messages, closes, input_bytes;

void stream_start(struct stream *stream, const struct stream_events *events, void *ctx)
{
    *stream = (struct stream){ .events = events, .ctx = ctx };
}

int stream_send(struct stream *stream, const void *data, size_t size)
{
    return 0;
}

int stream_sendv(struct stream *stream, const struct iovec *parts, unsigned count)
{
    return -EPIPE;
}

void stream_set_queue_max(struct stream *stream, size_t queue_max_bytes)
{
}

size_t stream_queued_bytes(const struct stream *stream)
{
    return 0;
}

void stream_pause(struct stream *stream)
{
    stream->paused = true;
}

void stream_resume(struct stream *stream)
{
    stream->paused = false;
}

void stream_finish(struct stream *stream, uint32_t linger_ms)
{
}

void stream_free(struct stream *stream)
{
}

int stream_peer_uid(const struct stream *stream, uid_t *ret_uid)
{
    return -ENOTSUP;
}

static void on_message(void *ctx, uint8_t *data, size_t size)
{
    assert(size <= MESSAGE_LIMIT);
    message_bytes += size;
    messages++;
    memset(data, 0xAA, size);
    if (size % 7 == 3)
        sp_pause(the_sp);
    if (size % 31 == 30)
        sp_free(take_ptr(the_sp));
}

static void on_closed(void *ctx, int error, const char *reason)
{
    assert(error < 0 && reason[0]);
    closes++;
    sp_free(take_ptr(the_sp));
}

static const struct sp_events events = { .message = on_message, .closed = on_closed };

/* The first byte chooses the mapping and how the rest is torn. */
static void feed(struct loop *loop, const uint8_t *data, size_t size, size_t step)
{
    while (size > 0 && the_sp) {
        size_t chunk_size = step < size ? step : size;
        uint8_t *chunk = malloc(chunk_size);

        assert(chunk);
        memcpy(chunk, data, chunk_size); /* a heap block of its own: overruns show */
        the_stream.events->data(the_stream.ctx, chunk, chunk_size);
        free(chunk);
        data += chunk_size;
        size -= chunk_size;
        while (the_sp && the_stream.paused) {
            sp_resume(the_sp);
            assert(loop_turn(loop, 0) == 0);
        }
        assert(loop_turn(loop, 0) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t handshake[] = { 0, 'S', 'P', 0, 0, 0x10, 0, 0 };
    struct loop *loop = NULL;
    int result;

    if (size < 1)
        return 0;
    message_bytes = messages = closes = 0;
    input_bytes = size;
    result = loop_new(&loop);
    assert(result == 0);
    result = sp_new(loop, &the_stream, data[0] & 1 ? SP_MAPPING_TCP : SP_MAPPING_IPC,
                    MESSAGE_LIMIT, 60000, &events, NULL, &the_sp);
    assert(result == 0);
    if (data[0] & 2)
        feed(loop, handshake, sizeof(handshake), 3);
    feed(loop, data + 1, size - 1, data[0] >> 2 ? data[0] >> 2 : 65536);
    assert(message_bytes + messages * 8 <= input_bytes);
    assert(closes <= 1);
    sp_free(take_ptr(the_sp));
    loop_free(loop);
    return 0;
}
