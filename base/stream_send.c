/* stream_send.c - what goes out on a connection; see stream.c for the rest.
 *
 * What is queued collects in `next`; it becomes `sending` when that is written, at the end of a
 * turn or as soon as it is big. What is big does not even begin to wait: it goes out from the
 * caller's memory, and only what the socket does not take is copied. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "stream_state.h"

#define STREAM_EAGER_SEND_BYTES (64u * 1024)  /* do not wait for the end of the turn */
#define STREAM_DIRECT_SEND_BYTES (16u * 1024) /* do not copy first */
#define STREAM_KEEP_BYTES (256u * 1024)       /* a bigger buffer is given back when empty */

/* nng's thread: the only lines of this file that run there. */
static void write_completed(void *argument)
{
    struct stream *stream = argument;

    loop_notify(stream->loop, &stream->write_done);
}

/* The peer is gone or going; what it said before is still to be read, if we read at all. */
static void stream_fail_writes(struct stream *stream, int error)
{
    stream->write_error = error;
    if (stream->state == STREAM_OPEN && !stream->paused)
        loop_timer_arm(stream->linger, STREAM_LAST_WORDS_MS);
    else
        stream_end(stream, error);
}

/* Writing. */

void stream_shrink(struct buf *buf)
{
    buf_clear(buf);
    if (buf->capacity > STREAM_KEEP_BYTES)
        buf_done(buf);
}

static void stream_post_write(struct stream *stream)
{
    nng_iov iov = { .iov_buf = stream->sending.data + stream->sent,
                    .iov_len = stream->sending.size - stream->sent };

    stream->writing = true;
    (void)nng_aio_set_iov(stream->write_aio, 1, &iov);
    nng_stream_send(stream->nng, stream->write_aio);
}

static void buf_swap(struct buf *one, struct buf *other)
{
    struct buf kept = *one;

    *one = *other;
    *other = kept;
}

/* `sending` is empty and gets what TLS has to say: of its own, of what is queued, and at the
 * end that it is the end. */
static void stream_seal(struct stream *stream)
{
    int error = tls_seal(stream->tls, &stream->next);

    if (error < 0) {
        stream_fail_writes(stream, error);
        return;
    }
    if (stream->next.size == 0) {
        stream_shrink(&stream->next);
        if (stream->state == STREAM_FINISHING)
            tls_close(stream->tls);
    }
    buf_swap(&stream->sending, tls_sealed(stream->tls));
}

/* False: all that can be written is. */
static bool stream_has_more(struct stream *stream)
{
    if (stream->sent < stream->sending.size)
        return true;
    stream_shrink(&stream->sending);
    stream->sent = 0;
    if (stream->tls)
        stream_seal(stream);
    else
        buf_swap(&stream->sending, &stream->next);
    return stream->sending.size > 0;
}

void stream_write(struct stream *stream)
{
    if (stream->write_error || !stream->nng || stream->writing ||
        stream->state == STREAM_ENDING)
        return;
    while (stream_has_more(stream)) {
        nng_iov iov = { .iov_buf = stream->sending.data + stream->sent,
                        .iov_len = stream->sending.size - stream->sent };
        size_t size;
        int error = stream_attempt(stream, nng_stream_send, &iov, 1, &size);

        if (error == NNG_EAGAIN) {
            stream_post_write(stream);
            return;
        }
        if (error != 0) {
            stream_fail_writes(stream, stream_errno(error));
            return;
        }
        stream->sent += size; /* may be a part */
    }
    if (stream->state == STREAM_FINISHING && stream_queued_bytes(stream) == 0)
        stream_end(stream, 0);
}

static void stream_check_low_water(struct stream *stream)
{
    if (!stream->above_high_water || stream_queued_bytes(stream) > STREAM_LOW_WATER_BYTES)
        return;
    stream->above_high_water = false;
    if (stream->state != STREAM_OPEN || !stream->events->drained)
        return;
    stream->events->drained(stream->ctx); /* may free: nothing follows */
}

static void on_flush(void *ctx)
{
    struct stream *stream = ctx;

    stream_write(stream);
    stream_check_low_water(stream);
}

static void on_write_done(void *ctx)
{
    struct stream *stream = ctx;
    int error = nng_aio_result(stream->write_aio);

    stream->writing = false;
    if (error != 0) {
        stream_fail_writes(stream, stream_errno(error));
        return;
    }
    stream->sent += nng_aio_count(stream->write_aio); /* may be a part */
    stream_write(stream);
    stream_check_low_water(stream);
}

/* Queueing. */

size_t stream_queued_bytes(const struct stream *stream)
{
    return stream->sending.size - stream->sent + stream->next.size;
}

void stream_set_queue_max(struct stream *stream, size_t queue_max_bytes)
{
    stream->queue_max_bytes = queue_max_bytes > STREAM_QUEUE_MAX_BYTES ? queue_max_bytes
                                                                       : STREAM_QUEUE_MAX_BYTES;
}

static int stream_may_send(const struct stream *stream, size_t size)
{
    size_t queued = stream_queued_bytes(stream);

    if ((stream->state != STREAM_NEW && stream->state != STREAM_OPEN) || stream->write_error)
        return -EPIPE;
    if (queued > stream->queue_max_bytes || size > stream->queue_max_bytes - queued)
        return -ENOBUFS;
    return 0;
}

/* Room for SIZE bytes behind all that is queued; NULL: no memory. */
static uint8_t *stream_place(struct stream *stream, size_t size)
{
    uint8_t *place = buf_reserve(&stream->next, size);

    if (!place)
        return NULL;
    stream->next.size += size;
    if (stream_queued_bytes(stream) > STREAM_HIGH_WATER_BYTES)
        stream->above_high_water = true;
    loop_defer(stream->loop, &stream->flush);
    return place;
}

int stream_send_place(struct stream *stream, size_t size, uint8_t **ret_place)
{
    int result = stream_may_send(stream, size);

    if (result < 0)
        return result;
    if (stream->next.size >= STREAM_EAGER_SEND_BYTES)
        stream_write(stream);
    *ret_place = stream_place(stream, size);
    return *ret_place ? 0 : -ENOMEM;
}

/* Without a copy, if nothing is queued before it: how many bytes of PARTS went. */
static size_t stream_send_directly(struct stream *stream, const struct iovec *parts,
                                   unsigned count)
{
    nng_iov iov[STREAM_PARTS_MAX];
    size_t sent = 0;
    int error;

    stream_write(stream);
    if (stream->writing || stream->write_error || stream_queued_bytes(stream) > 0)
        return 0;
    for (unsigned i = 0; i < count; i++)
        iov[i] = (nng_iov){ .iov_buf = parts[i].iov_base, .iov_len = parts[i].iov_len };
    error = stream_attempt(stream, nng_stream_send, iov, count, &sent);
    if (error == 0)
        return sent;
    if (error != NNG_EAGAIN)
        stream_fail_writes(stream, stream_errno(error));
    return 0;
}

static void copy_parts(uint8_t *to, const struct iovec *parts, unsigned count, size_t skipped)
{
    for (unsigned i = 0; i < count; i++) {
        size_t skip = skipped < parts[i].iov_len ? skipped : parts[i].iov_len;
        size_t size = parts[i].iov_len - skip;

        skipped -= skip;
        if (size > 0)
            memcpy(to, (const uint8_t *)parts[i].iov_base + skip, size);
        to += size;
    }
}

int stream_sendv(struct stream *stream, const struct iovec *parts, unsigned count)
{
    size_t size = 0, sent = 0;
    uint8_t *place;
    int result;

    assert(count <= STREAM_PARTS_MAX);
    for (unsigned i = 0; i < count; i++)
        size += parts[i].iov_len;
    result = stream_may_send(stream, size);
    if (result < 0)
        return result;
    if (size >= STREAM_DIRECT_SEND_BYTES && stream->state == STREAM_OPEN && !stream->tls)
        sent = stream_send_directly(stream, parts, count);
    if (sent == size || stream->write_error)
        return 0; /* a failure just now is told by `closed` */
    result = stream_send_place(stream, size - sent, &place);
    if (result == 0)
        copy_parts(place, parts, count, sent);
    else if (sent > 0)
        stream_fail_writes(stream, result); /* nothing may follow the half of it */
    return result;
}

int stream_send(struct stream *stream, const void *data, size_t size)
{
    struct iovec part = { .iov_base = (void *)data, .iov_len = size }; /* only read */

    return stream_sendv(stream, &part, 1);
}

/* Life. */

void stream_send_init(struct stream *stream)
{
    loop_notice_init(&stream->write_done, on_write_done, stream);
    loop_notice_init(&stream->flush, on_flush, stream);
    stream->queue_max_bytes = STREAM_QUEUE_MAX_BYTES;
}

int stream_send_allocate(struct stream *stream)
{
    int error = nng_aio_alloc(&stream->write_aio, write_completed, stream);

    if (error == 0)
        nng_aio_set_timeout(stream->write_aio, NNG_DURATION_INFINITE);
    return stream_errno(error);
}

void stream_send_stop(struct stream *stream)
{
    stream_aio_free(&stream->write_aio);
    loop_notice_cancel(stream->loop, &stream->write_done);
    loop_notice_cancel(stream->loop, &stream->flush);
    stream->writing = false;
}

void stream_send_done(struct stream *stream)
{
    buf_done(&stream->sending);
    buf_done(&stream->next);
}
