/* stream.c - one established connection: its life, what comes and the end. What goes is in
 * stream_send.c; listener and dialer are in stream_connect.c.
 *
 * A read that nng's threads carry out costs three hand-overs: from its poller to a task thread,
 * from there to the loop. So whatever lies ready is read by an attempt, on the loop's own
 * thread; a read is posted only to wait. */
#include "stream_state.h"

#include <errno.h>
#include <string.h>

/* Of a posted read: enough for a call. Whatever is larger is read by attempts, and into memory
 * that all streams of a loop share. */
#define STREAM_WAIT_BYTES 4096u
#define STREAM_READS_A_TURN 8u /* of one stream, before others have their turn */

/* nng's thread: the only lines of this file that run there. */

static void read_completed(void *argument)
{
    struct stream *stream = argument;

    loop_notify(stream->loop, &stream->read_done);
}

/* Life. */

static void stream_release(struct stream *stream)
{
    stream_send_done(stream);
    tls_free(stream->tls);
    buf_done(&stream->plain);
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
    stream_aio_free(&stream->attempt_aio);
    stream_send_stop(stream);
    if (stream->nng)
        nng_stream_free(take_ptr(stream->nng));
    loop_notice_cancel(stream->loop, &stream->read_done);
    loop_notice_cancel(stream->loop, &stream->read_more);
    loop_timer_free(take_ptr(stream->linger));
    stream->reading = false;
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

/* An aio without a callback is over when the call that began it returns, or it waits for nng's
 * poller. Cancelling it then is safe: nothing of it has moved, or all that it will. */
int stream_attempt(struct stream *stream, void (*operation)(nng_stream *, nng_aio *),
                   const nng_iov *parts, unsigned count, size_t *ret_size)
{
    nng_aio *aio = stream->attempt_aio;
    int error;

    (void)nng_aio_set_iov(aio, count, parts); /* fails for more than STREAM_PARTS_MAX only */
    operation(stream->nng, aio);
    nng_aio_cancel(aio);
    nng_aio_wait(aio); /* does not: it is over */
    error = nng_aio_result(aio);
    *ret_size = nng_aio_count(aio);
    return error == NNG_ECANCELED ? NNG_EAGAIN : error;
}

static bool stream_wants_bytes(const struct stream *stream)
{
    return !stream->reading && !stream->paused && stream->unread == 0 &&
           (stream->state == STREAM_OPEN || stream->state == STREAM_FINISHING);
}

static void stream_post_read(struct stream *stream)
{
    nng_iov iov = { .iov_buf = stream->read, .iov_len = STREAM_WAIT_BYTES };

    (void)nng_aio_set_iov(stream->read_aio, 1, &iov); /* fails for more than 8 only */
    stream->reading = true;
    nng_stream_recv(stream->nng, stream->read_aio);
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

/* The owner may free, pause or end the stream. */
static void stream_give(struct stream *stream, uint8_t *data, size_t size)
{
    if (size > 0 && stream->state == STREAM_OPEN)
        stream->events->data(stream->ctx, data, size);
}

/* The session is over: what it has said last, an alert as a rule, is still sent. */
static void stream_tls_over(struct stream *stream, int error)
{
    if (error == -EPIPE && stream->state == STREAM_FINISHING)
        return; /* the peer has shut its side and may still read ours */
    stream_write(stream);
    stream_end(stream, error == -EPIPE ? 0 : error);
}

/* Bytes of the socket; the owner gets them, or what is in them. */
static void stream_take(struct stream *stream, uint8_t *data, size_t size)
{
    int error;

    if (!stream->tls) {
        stream_give(stream, data, size);
        return;
    }
    error = tls_unseal(stream->tls, data, size, &stream->plain);
    stream_give(stream, stream->plain.data, stream->plain.size);
    stream_shrink(&stream->plain);
    if (error != 0)
        stream_tls_over(stream, error);
    else
        loop_defer(stream->loop,
                   &stream->flush); /* of a handshake, or what waited for its end */
}

/* One attempt, behind the READY bytes that a posted read brought; all goes to the owner. 0, or
 * an error of nng: NNG_EAGAIN is no end. */
static int stream_read_once(struct stream *stream, size_t ready)
{
    uint8_t *data = loop_scratch(stream->loop);
    nng_iov iov = { .iov_buf = data + ready, .iov_len = LOOP_SCRATCH_BYTES - ready };
    bool more = ready == 0 || ready == STREAM_WAIT_BYTES;
    size_t size = 0;
    int error = more ? stream_attempt(stream, nng_stream_recv, &iov, 1, &size) : 0;

    memcpy(data, stream->read, ready);
    stream_take(stream, data, ready + size);
    return error;
}

/* Gives the owner what there is, then waits for more. READY: see above. */
static void stream_read(struct stream *stream, size_t ready)
{
    unsigned reads = 0;
    int error = 0;

    stream_enter(stream);
    while (error == 0 && stream_wants_bytes(stream)) {
        if (reads++ == STREAM_READS_A_TURN) {
            loop_defer(stream->loop, &stream->read_more);
            break;
        }
        error = stream_read_once(stream, ready);
        ready = 0;
    }
    if (error == NNG_EAGAIN && stream_wants_bytes(stream))
        stream_post_read(stream);
    else if (error != 0 && error != NNG_EAGAIN)
        stream_read_failed(stream, error);
    (void)stream_leave(stream); /* nothing follows */
}

static void on_read_more(void *ctx)
{
    stream_read(ctx, 0);
}

static void on_read_done(void *ctx)
{
    struct stream *stream = ctx;
    int error = nng_aio_result(stream->read_aio);

    stream->reading = false;
    if (error != 0)
        stream_read_failed(stream, error);
    else if (stream->paused)
        stream->unread = nng_aio_count(stream->read_aio);
    else
        stream_read(stream, nng_aio_count(stream->read_aio));
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
    stream_read(stream, unread);
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

void stream_end(struct stream *stream, int error)
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
    loop_defer(stream->loop, &stream->read_more); /* unread, a tcp close would be a reset */
    loop_defer(stream->loop, &stream->flush);
}

/* Making. */

static int stream_allocate(struct stream *stream, struct tls_config *tls)
{
    int error, result;

    stream->read = malloc(STREAM_WAIT_BYTES);
    if (!stream->read)
        return -ENOMEM;
    error = nng_aio_alloc(&stream->read_aio, read_completed, stream);
    if (error == 0)
        error = nng_aio_alloc(&stream->attempt_aio, NULL, NULL);
    if (error != 0)
        return stream_errno(error);
    nng_aio_set_timeout(stream->read_aio, NNG_DURATION_INFINITE);
    result = stream_send_allocate(stream);
    if (result == 0 && tls)
        result = tls_new(tls, &stream->tls);
    return result < 0 ? result
                      : loop_timer_new(stream->loop, on_linger_over, stream, &stream->linger);
}

int stream_wrap(struct loop *loop, nng_stream *own_nng, struct tls_config *tls,
                struct stream **ret_stream)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    int result;

    if (!stream) {
        nng_stream_free(own_nng);
        return -ENOMEM;
    }
    stream->loop = loop;
    stream->nng = own_nng;
    loop_notice_init(&stream->read_done, on_read_done, stream);
    loop_notice_init(&stream->read_more, on_read_more, stream);
    stream_send_init(stream);
    loop_notice_init(&stream->deliver, on_deliver, stream);
    result = stream_allocate(stream, tls);
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
    if (stream->tls)
        stream_take(stream, NULL, 0);             /* begins the handshake */
    loop_defer(stream->loop, &stream->read_more); /* not from inside this call */
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
