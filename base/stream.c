/* stream.c - one established connection: one read and one write under way at most.
 *
 * What is queued collects in `next`; it becomes `sending` when the write before it has ended,
 * at the end of a turn or as soon as it is big. Listener and dialer are in stream_connect.c. */
#include "stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "stream_nng.h"

#define STREAM_READ_BYTES (64u * 1024)
#define STREAM_EAGER_SEND_BYTES (64u * 1024) /* do not wait for the end of the turn */
#define STREAM_KEEP_BYTES (256u * 1024)      /* a bigger buffer is given back when empty */
#define STREAM_LAST_WORDS_MS 1000            /* from a failed write to the end of reading */

enum stream_state {
    STREAM_NEW,       /* not started: nothing is read; sends are taken */
    STREAM_OPEN,      /* reads and writes; `closed` is still to come */
    STREAM_FINISHING, /* the queue is sent, what comes is dropped; `closed` is still to come */
    STREAM_ENDING,    /* the end is known and `closed` is queued */
    STREAM_CLOSED,    /* `closed` was called or never will be: only stream_free() is left */
};

/* A wake-up costs more than a small write. So the end of a write that left nothing to do is
 * only noted, for the next send to find; nng's thread moves RUNNING to ENDED, the loop all
 * else. */
enum write_state {
    WRITE_NONE,    /* none is posted */
    WRITE_RUNNING, /* posted; a notice comes only if it fails or is partial */
    WRITE_WATCHED, /* posted; a notice comes in any case */
    WRITE_ENDED,   /* all of it went out; not accounted for yet */
};

struct stream {
    struct loop *loop;
    nng_stream *nng;
    const struct stream_events *events;
    void *ctx;
    enum stream_state state;
    int end_error; /* for `closed` */

    nng_aio *read_aio;
    struct loop_notice read_done; /* notified by nng's thread */
    bool reading;                 /* a read is posted, or its notice is queued */
    bool last_read;               /* a read has failed, and the next failure is the end */
    int read_error;               /* of that read; 0: it was the peer's orderly end */
    bool paused;
    size_t unread; /* bytes of `read` not delivered because of a pause */
    uint8_t *read;

    nng_aio *write_aio;
    struct loop_notice write_done; /* notified by nng's thread */
    struct loop_notice flush;      /* deferred: starts a write at the end of the turn */
    _Atomic(enum write_state) write_state;
    size_t posted;   /* bytes of the write that is posted */
    int write_error; /* no more is written, but the peer's last words are read */
    bool above_high_water;
    size_t queue_max_bytes;
    struct buf sending;
    size_t sent; /* of `sending` */
    struct buf next;

    struct loop_notice deliver; /* deferred: what a resume or an end has to tell */
    struct loop_timer *linger;
    unsigned calls; /* callbacks of ours on the stack: freeing waits for them */
    bool freed;     /* stream_free() came from one of them */
};

static void stream_end(struct stream *stream, int error);

/* nng's threads: the only lines of this file that run there. They queue a notice, or note that
 * there is nothing to notice. */

static void read_completed(void *argument)
{
    struct stream *stream = argument;

    loop_notify(stream->loop, &stream->read_done);
}

static void write_completed(void *argument)
{
    struct stream *stream = argument;
    enum write_state running = WRITE_RUNNING;
    bool whole = nng_aio_result(stream->write_aio) == 0 &&
                 nng_aio_count(stream->write_aio) == stream->posted;

    if (whole && atomic_compare_exchange_strong(&stream->write_state, &running, WRITE_ENDED))
        return;
    loop_notify(stream->loop, &stream->write_done);
}

/* Life. */

static void stream_release(struct stream *stream)
{
    buf_done(&stream->sending);
    buf_done(&stream->next);
    free(stream->read);
    free(stream);
}

static void stream_enter(struct stream *stream)
{
    stream->calls++;
}

/* False: the stream is gone. */
static bool stream_leave(struct stream *stream)
{
    stream->calls--;
    if (!stream->freed)
        return true;
    if (stream->calls == 0)
        stream_release(stream);
    return false;
}

/* Ends nng's part: after this none of its threads knows the stream. */
static void stream_disconnect(struct stream *stream)
{
    if (stream->nng)
        nng_stream_close(stream->nng);
    stream_aio_free(&stream->read_aio);
    stream_aio_free(&stream->write_aio);
    if (stream->nng)
        nng_stream_free(take_ptr(stream->nng));
    loop_notice_cancel(stream->loop, &stream->read_done);
    loop_notice_cancel(stream->loop, &stream->write_done);
    loop_notice_cancel(stream->loop, &stream->flush);
    loop_timer_free(take_ptr(stream->linger));
    stream->reading = false;
    atomic_store(&stream->write_state, WRITE_NONE);
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    stream_disconnect(stream);
    loop_notice_cancel(stream->loop, &stream->deliver);
    stream->state = STREAM_CLOSED;
    stream->freed = true;
    if (stream->calls == 0)
        stream_release(stream);
}

/* Reading. */

static void stream_post_read(struct stream *stream)
{
    nng_iov iov = { .iov_buf = stream->read, .iov_len = STREAM_READ_BYTES };

    (void)nng_aio_set_iov(stream->read_aio, 1, &iov); /* fails for more than 8 only */
    stream->reading = true;
    nng_stream_recv(stream->nng, stream->read_aio);
}

static void stream_read(struct stream *stream)
{
    if (stream->reading || stream->paused || stream->unread > 0)
        return;
    if (stream->state == STREAM_OPEN || stream->state == STREAM_FINISHING)
        stream_post_read(stream);
}

/* Gives the bytes to the owner and reads on, unless that has freed, paused or ended the stream.
 */
static void stream_deliver_bytes(struct stream *stream, size_t size)
{
    stream_enter(stream);
    stream->events->data(stream->ctx, stream->read, size);
    if (stream_leave(stream))
        stream_read(stream);
}

/* When a socket reports an error, nng fails the read without looking whether bytes came before
 * it; they are still there, so that only the second failure is the end. */
static void stream_read_failed(struct stream *stream, int error)
{
    bool orderly = error == NNG_ECLOSED || error == NNG_ECONNSHUT;

    if (stream->state != STREAM_OPEN)
        return; /* finishing: the peer may have shut its side and still read ours */
    stream->read_error = orderly ? 0 : stream_errno(error);
    if (stream->last_read) {
        stream_end(stream, stream->read_error);
        return;
    }
    stream->last_read = true;
    loop_timer_arm(stream->linger, STREAM_LAST_WORDS_MS);
    stream_post_read(stream);
}

static void on_read_done(void *ctx)
{
    struct stream *stream = ctx;
    int error = nng_aio_result(stream->read_aio);
    size_t size = nng_aio_count(stream->read_aio);

    stream->reading = false;
    if (error != 0) {
        stream_read_failed(stream, error);
    } else if (stream->state == STREAM_FINISHING) {
        stream_read(stream);
    } else if (stream->paused) {
        stream->unread = size;
    } else if (stream->state == STREAM_OPEN) {
        stream_deliver_bytes(stream, size);
    }
}

/* What could not be told from inside the call that caused it: held bytes, or the end. */
static void on_deliver(void *ctx)
{
    struct stream *stream = ctx;
    size_t unread = stream->unread;

    if (stream->state == STREAM_ENDING) {
        stream_disconnect(stream);
        stream->state = STREAM_CLOSED;
        stream->events->closed(stream->ctx, stream->end_error); /* may free: nothing follows */
        return;
    }
    if (stream->state != STREAM_OPEN || stream->paused)
        return;
    stream->unread = 0;
    if (unread > 0)
        stream_deliver_bytes(stream, unread);
    else
        stream_read(stream);
}

void stream_pause(struct stream *stream)
{
    stream->paused = true;
}

void stream_resume(struct stream *stream)
{
    if (!stream->paused)
        return;
    stream->paused = false;
    if (stream->state == STREAM_OPEN)
        loop_defer(stream->loop, &stream->deliver);
}

/* The end. */

/* The first reason counts; bytes held back by a pause are lost with it. */
static void stream_end(struct stream *stream, int error)
{
    if (stream->state != STREAM_OPEN && stream->state != STREAM_FINISHING)
        return;
    stream->end_error = error;
    stream->state = STREAM_ENDING;
    loop_defer(stream->loop, &stream->deliver);
}

static void on_linger_over(void *ctx)
{
    struct stream *stream = ctx;

    if (stream->write_error)
        stream_end(stream, stream->write_error);
    else
        stream_end(stream, stream->state == STREAM_FINISHING ? -ETIMEDOUT : stream->read_error);
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

void stream_finish(struct stream *stream, uint32_t linger_ms)
{
    if (stream->state != STREAM_OPEN)
        return;
    stream->state = STREAM_FINISHING;
    stream->paused = false;
    stream->unread = 0;
    loop_timer_arm(stream->linger, linger_ms);
    if (stream->write_error) {
        stream_end(stream, stream->write_error);
        return;
    }
    if (stream->calls ==
        0) /* else the bytes of the last read are in use: their delivery reads on */
        stream_read(stream); /* unread bytes would make a tcp close a reset */
    loop_defer(stream->loop, &stream->flush);
}

/* Writing. */

static void stream_shrink(struct buf *buf)
{
    buf_clear(buf);
    if (buf->capacity > STREAM_KEEP_BYTES)
        buf_done(buf);
}

/* Whether a write is under way; if so, its end will be noticed. */
static bool stream_write_busy(struct stream *stream)
{
    enum write_state state = WRITE_RUNNING;

    if (atomic_compare_exchange_strong(&stream->write_state, &state, WRITE_WATCHED))
        return true;
    if (state == WRITE_ENDED) {
        stream->sent += stream->posted;
        atomic_store(&stream->write_state, WRITE_NONE);
    }
    return state == WRITE_WATCHED;
}

static void stream_post_write(struct stream *stream)
{
    nng_iov iov = { .iov_buf = stream->sending.data + stream->sent,
                    .iov_len = stream->sending.size - stream->sent };
    bool watch = stream->state == STREAM_FINISHING || stream->above_high_water ||
                 stream->next.size > 0 || iov.iov_len > STREAM_KEEP_BYTES;

    stream->posted = iov.iov_len;
    atomic_store(&stream->write_state, watch ? WRITE_WATCHED : WRITE_RUNNING);
    (void)nng_aio_set_iov(stream->write_aio, 1, &iov);
    nng_stream_send(stream->nng, stream->write_aio);
}

/* Posts what is left of `sending`, or makes `next` the one to send. */
static void stream_write(struct stream *stream)
{
    if (stream->write_error || !stream->nng || stream->state == STREAM_ENDING)
        return;
    if (stream_write_busy(stream))
        return;
    if (stream->sent == stream->sending.size) {
        struct buf empty;

        stream_shrink(&stream->sending);
        empty = stream->sending;
        stream->sending = stream->next;
        stream->next = empty;
        stream->sent = 0;
    }
    if (stream->sending.size > 0)
        stream_post_write(stream);
    else if (stream->state == STREAM_FINISHING)
        stream_end(stream, 0);
}

static void on_flush(void *ctx)
{
    stream_write(ctx);
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

static void on_write_done(void *ctx)
{
    struct stream *stream = ctx;
    int error = nng_aio_result(stream->write_aio);

    atomic_store(&stream->write_state, WRITE_NONE);
    if (error != 0) {
        stream_fail_writes(stream, stream_errno(error));
        return;
    }
    stream->sent += nng_aio_count(stream->write_aio); /* may be a part */
    stream_write(stream);
    stream_check_low_water(stream);
}

size_t stream_queued_bytes(const struct stream *stream)
{
    size_t queued = stream->sending.size - stream->sent + stream->next.size;

    return atomic_load(&stream->write_state) == WRITE_ENDED ? queued - stream->posted : queued;
}

void stream_set_queue_max(struct stream *stream, size_t queue_max_bytes)
{
    stream->queue_max_bytes = queue_max_bytes > STREAM_QUEUE_MAX_BYTES ? queue_max_bytes
                                                                       : STREAM_QUEUE_MAX_BYTES;
}

int stream_send_place(struct stream *stream, size_t size, uint8_t **ret_place)
{
    size_t queued = stream_queued_bytes(stream);

    if ((stream->state != STREAM_NEW && stream->state != STREAM_OPEN) || stream->write_error)
        return -EPIPE;
    if (queued > stream->queue_max_bytes || size > stream->queue_max_bytes - queued)
        return -ENOBUFS;
    if (stream->next.size >= STREAM_EAGER_SEND_BYTES)
        stream_write(stream);
    *ret_place = buf_reserve(&stream->next, size);
    if (!*ret_place)
        return -ENOMEM;
    stream->next.size += size;
    if (queued + size > STREAM_HIGH_WATER_BYTES)
        stream->above_high_water = true;
    loop_defer(stream->loop, &stream->flush);
    return 0;
}

int stream_send(struct stream *stream, const void *data, size_t size)
{
    uint8_t *place;
    int result = stream_send_place(stream, size, &place);

    if (result == 0 && size > 0)
        memcpy(place, data, size);
    return result;
}

/* Making. */

static int stream_allocate(struct stream *stream)
{
    int error;

    stream->read = malloc(STREAM_READ_BYTES);
    if (!stream->read)
        return -ENOMEM;
    error = nng_aio_alloc(&stream->read_aio, read_completed, stream);
    if (error == 0)
        error = nng_aio_alloc(&stream->write_aio, write_completed, stream);
    if (error != 0)
        return stream_errno(error);
    nng_aio_set_timeout(stream->read_aio, NNG_DURATION_INFINITE);
    nng_aio_set_timeout(stream->write_aio, NNG_DURATION_INFINITE);
    return loop_timer_new(stream->loop, on_linger_over, stream, &stream->linger);
}

int stream_wrap(struct loop *loop, nng_stream *own_nng, bool tls, struct stream **ret_stream)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    int result;

    if (!stream) {
        nng_stream_free(own_nng);
        return -ENOMEM;
    }
    stream->loop = loop;
    stream->nng = own_nng;
    stream->last_read = tls; /* nng's TLS does not answer a read behind a failed one */
    loop_notice_init(&stream->read_done, on_read_done, stream);
    loop_notice_init(&stream->write_done, on_write_done, stream);
    loop_notice_init(&stream->flush, on_flush, stream);
    loop_notice_init(&stream->deliver, on_deliver, stream);
    stream->queue_max_bytes = STREAM_QUEUE_MAX_BYTES;
    result = stream_allocate(stream);
    if (result < 0) {
        stream_free(stream);
        return result;
    }
    *ret_stream = stream;
    return 0;
}

void stream_start(struct stream *stream, const struct stream_events *events, void *ctx)
{
    stream->events = events;
    stream->ctx = ctx;
    stream->state = STREAM_OPEN;
    stream_read(stream);
}

int stream_peer_uid(const struct stream *stream, uid_t *ret_uid)
{
    uint64_t uid;
    int error;

    if (!stream->nng)
        return -EPIPE;
    error = nng_stream_get_uint64(stream->nng, NNG_OPT_IPC_PEER_UID, &uid);
    if (error != 0)
        return error == NNG_ENOTSUP ? -ENOTSUP : stream_errno(error);
    *ret_uid = (uid_t)uid;
    return 0;
}
