/* sp.c - see sp.h.
 *
 * Bytes arrive in chunks of the stream. A message that lies whole in its chunk is delivered
 * from there; one that is torn collects in `partial`. What comes behind a pause waits in
 * `held`. */
#include "sp.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define SP_HANDSHAKE_BYTES 8
#define SP_HEADER_MAX_BYTES 9
#define SP_IPC_MESSAGE 0x01
#define SP_KEEP_BYTES (256u * 1024) /* a bigger `partial` is given back when empty */

static const uint8_t sp_handshake[SP_HANDSHAKE_BYTES] = { 0, 'S', 'P', 0, 0, 0x10, 0, 0 };

enum sp_state {
    SP_HANDSHAKE, /* the peer's 8 bytes are not complete; the timer runs */
    SP_READY,     /* messages come */
    SP_FINISHING, /* what is queued goes out, what comes is dropped */
    SP_BROKEN,    /* the peer broke the rules: `closed` is queued, what it sends is dropped */
    SP_CLOSED,    /* `closed` was called: only sp_free() is left */
};

struct sp {
    struct loop *loop;
    struct stream *stream;
    enum sp_state state;
    size_t header_bytes; /* of a message, by mapping */
    size_t max_message_bytes;
    const struct sp_events *events;
    void *ctx;

    struct buf partial; /* the beginning of the handshake or of a message, header included */
    struct buf held;    /* read, but behind a pause */
    size_t held_offset;
    bool paused;

    struct loop_timer *handshake_timer;
    struct loop_notice work; /* deferred: `held` is to be read, or the end to be told */
    int error;               /* for `closed`, in SP_BROKEN */
    const char *reason;
    unsigned calls; /* callbacks of ours on the stack: freeing waits for them */
    bool freed;
};

/* Life. */

static void sp_release(struct sp *sp)
{
    buf_done(&sp->partial);
    buf_done(&sp->held);
    free(sp);
}

static void sp_enter(struct sp *sp)
{
    sp->calls++;
}

/* False: the link is gone. */
static bool sp_leave(struct sp *sp)
{
    sp->calls--;
    if (!sp->freed)
        return true;
    if (sp->calls == 0)
        sp_release(sp);
    return false;
}

void sp_free(struct sp *sp)
{
    if (!sp)
        return;
    stream_free(take_ptr(sp->stream));
    loop_timer_free(take_ptr(sp->handshake_timer));
    loop_notice_cancel(sp->loop, &sp->work);
    sp->state = SP_CLOSED;
    sp->freed = true;
    if (sp->calls == 0)
        sp_release(sp);
}

static void sp_close(struct sp *sp, int error, const char *reason)
{
    stream_free(take_ptr(sp->stream));
    loop_timer_disarm(sp->handshake_timer);
    loop_notice_cancel(sp->loop, &sp->work);
    sp->state = SP_CLOSED;
    sp->events->closed(sp->ctx, error, reason); /* may free: nothing follows */
}

static void sp_break(struct sp *sp, int error, const char *reason)
{
    sp->state = SP_BROKEN;
    sp->error = error;
    sp->reason = reason;
    loop_defer(sp->loop, &sp->work);
}

/* Reading. All return false when the link broke, was closed or freed by the callback. */

static bool sp_deliver(struct sp *sp, uint8_t *message, size_t size)
{
    sp_enter(sp);
    sp->events->message(sp->ctx, message, size);
    return sp_leave(sp) && sp->state == SP_READY;
}

static bool sp_read_handshake(struct sp *sp, const uint8_t *bytes)
{
    if (memcmp(bytes, sp_handshake, SP_HANDSHAKE_BYTES) != 0) {
        sp_break(sp, -EPROTO, "not the handshake of an nng PAIR0 socket");
        return false;
    }
    loop_timer_disarm(sp->handshake_timer);
    sp->state = SP_READY;
    if (!sp->events->ready)
        return true;
    sp_enter(sp);
    sp->events->ready(sp->ctx);
    return sp_leave(sp) && sp->state == SP_READY;
}

/* The size of the message whose header is at HEADER. */
static bool sp_read_header(struct sp *sp, const uint8_t *header, size_t *ret_size)
{
    uint64_t size;

    memcpy(&size, header + sp->header_bytes - sizeof(size), sizeof(size));
    size = be64toh(size);
    if (sp->header_bytes == SP_HEADER_MAX_BYTES && header[0] != SP_IPC_MESSAGE) {
        sp_break(sp, -EPROTO, "unknown message type in the ipc header");
        return false;
    }
    if (size > sp->max_message_bytes) {
        sp_break(sp, -EMSGSIZE, "message over max_message_bytes");
        return false;
    }
    *ret_size = (size_t)size;
    return true;
}

/* Copies what `partial` lacks to reach WANTED; advances *data. False: out of memory. */
static bool sp_fill(struct sp *sp, size_t wanted, uint8_t **data, size_t *size)
{
    size_t taken = wanted - sp->partial.size;

    if (taken > *size)
        taken = *size;
    sp->partial.limit = wanted; /* no memory beyond this message */
    if (buf_append(&sp->partial, *data, taken) < 0) {
        sp_break(sp, -ENOMEM, "out of memory");
        return false;
    }
    *data += taken;
    *size -= taken;
    return true;
}

static void sp_partial_clear(struct sp *sp)
{
    buf_clear(&sp->partial);
    if (sp->partial.capacity > SP_KEEP_BYTES)
        buf_done(&sp->partial);
}

/* Goes on with what `partial` holds the beginning of. */
static bool sp_feed_partial(struct sp *sp, uint8_t **data, size_t *size)
{
    size_t wanted = sp->state == SP_HANDSHAKE ? SP_HANDSHAKE_BYTES : sp->header_bytes;
    size_t message_size;

    if (sp->partial.size < wanted && !sp_fill(sp, wanted, data, size))
        return false;
    if (sp->partial.size < wanted)
        return true;
    if (sp->state == SP_HANDSHAKE) {
        buf_clear(&sp->partial);
        return sp_read_handshake(sp, sp->partial.data);
    }
    if (!sp_read_header(sp, sp->partial.data, &message_size) ||
        !sp_fill(sp, wanted + message_size, data, size))
        return false;
    if (sp->partial.size < wanted + message_size)
        return true;
    if (!sp_deliver(sp, sp->partial.data + wanted, message_size))
        return false;
    sp_partial_clear(sp);
    return true;
}

/* Reads one message in place, or begins `partial`. */
static bool sp_feed_whole(struct sp *sp, uint8_t **data, size_t *size)
{
    uint8_t *header = *data;
    size_t message_size;

    if (sp->state == SP_HANDSHAKE || *size < sp->header_bytes)
        return sp_feed_partial(sp, data, size);
    if (!sp_read_header(sp, header, &message_size))
        return false;
    if (*size - sp->header_bytes < message_size)
        return sp_feed_partial(sp, data, size);
    *data += sp->header_bytes + message_size;
    *size -= sp->header_bytes + message_size;
    return sp_deliver(sp, header + sp->header_bytes, message_size);
}

/* Takes what it can until a pause; false as above. */
static bool sp_feed(struct sp *sp, uint8_t **data, size_t *size)
{
    bool alive = true;

    while (alive && *size > 0 && !sp->paused) {
        if (sp->partial.size > 0)
            alive = sp_feed_partial(sp, data, size);
        else
            alive = sp_feed_whole(sp, data, size);
    }
    return alive;
}

static void on_data(void *ctx, uint8_t *data, size_t size)
{
    struct sp *sp = ctx;

    if (sp->state != SP_HANDSHAKE && sp->state != SP_READY)
        return;
    if (!sp_feed(sp, &data, &size) || size == 0)
        return;
    if (buf_append(&sp->held, data, size) < 0)
        sp_break(sp, -ENOMEM, "out of memory");
}

/* False: the link is gone, or another pause left some. */
static bool sp_feed_held(struct sp *sp)
{
    uint8_t *data = sp->held.data + sp->held_offset;
    size_t size = sp->held.size - sp->held_offset;

    if (!sp_feed(sp, &data, &size))
        return false;
    sp->held_offset = sp->held.size - size;
    if (size > 0)
        return false;
    buf_clear(&sp->held);
    sp->held_offset = 0;
    return true;
}

static void on_work(void *ctx)
{
    struct sp *sp = ctx;

    if (sp->state == SP_BROKEN) {
        sp_close(sp, sp->error, sp->reason);
        return;
    }
    if (sp->state == SP_FINISHING || sp->paused)
        return;
    if (sp->held.size > 0 && !sp_feed_held(sp))
        return;
    if (!sp->paused)
        stream_resume(sp->stream);
}

void sp_pause(struct sp *sp)
{
    sp->paused = true;
    if (sp->stream)
        stream_pause(sp->stream);
}

void sp_resume(struct sp *sp)
{
    if (!sp->paused)
        return;
    sp->paused = false;
    if (sp->state == SP_HANDSHAKE || sp->state == SP_READY)
        loop_defer(sp->loop, &sp->work);
}

/* The stream's other events. */

static void on_drained(void *ctx)
{
    struct sp *sp = ctx;

    if (sp->events->drained)
        sp->events->drained(sp->ctx);
}

static void on_closed(void *ctx, int error)
{
    struct sp *sp = ctx;

    if (sp->state == SP_BROKEN)
        sp_close(sp, sp->error, sp->reason);
    else
        sp_close(sp, error, error == 0 ? "closed" : "connection failed");
}

static void on_handshake_late(void *ctx)
{
    sp_break(ctx, -ETIMEDOUT, "no handshake in time");
}

/* Sending. */

int sp_sendv(struct sp *sp, const struct iovec *parts, int count)
{
    uint8_t header[SP_HEADER_MAX_BYTES] = { SP_IPC_MESSAGE };
    struct iovec all[STREAM_PARTS_MAX];
    uint64_t length = 0;

    assert(count >= 0 && (unsigned)count < STREAM_PARTS_MAX);
    if (sp->state != SP_HANDSHAKE && sp->state != SP_READY)
        return -EPIPE;
    for (int i = 0; i < count; i++) {
        length += parts[i].iov_len;
        all[i + 1] = parts[i];
    }
    length = htobe64(length);
    memcpy(header + sp->header_bytes - sizeof(length), &length, sizeof(length));
    all[0] = (struct iovec){ .iov_base = header, .iov_len = sp->header_bytes };
    return stream_sendv(sp->stream, all, (unsigned)count + 1);
}

int sp_send(struct sp *sp, const void *data, size_t size)
{
    struct iovec part = { .iov_base = (void *)data, .iov_len = size };

    return sp_sendv(sp, &part, 1);
}

size_t sp_queued_bytes(const struct sp *sp)
{
    return sp->stream ? stream_queued_bytes(sp->stream) : 0;
}

void sp_finish(struct sp *sp, uint32_t linger_ms)
{
    if (sp->state != SP_HANDSHAKE && sp->state != SP_READY)
        return;
    sp->state = SP_FINISHING;
    loop_timer_disarm(sp->handshake_timer);
    stream_finish(sp->stream, linger_ms);
}

/* Making. */

static const struct stream_events sp_stream_events = {
    .data = on_data,
    .drained = on_drained,
    .closed = on_closed,
};

int sp_new(struct loop *loop, struct stream *own_stream, enum sp_mapping mapping,
           size_t max_message_bytes, uint32_t handshake_timeout_ms,
           const struct sp_events *events, void *ctx, struct sp **ret_sp)
{
    struct sp *sp = calloc(1, sizeof(*sp));
    int result;

    if (!sp) {
        stream_free(own_stream);
        return -ENOMEM;
    }
    *sp = (struct sp){
        .loop = loop,
        .stream = own_stream,
        .header_bytes = mapping == SP_MAPPING_IPC ? SP_HEADER_MAX_BYTES : sizeof(uint64_t),
        .max_message_bytes = max_message_bytes,
        .events = events,
        .ctx = ctx,
    };
    loop_notice_init(&sp->work, on_work, sp);
    result = loop_timer_new(loop, on_handshake_late, sp, &sp->handshake_timer);
    if (result == 0)
        result = stream_send(own_stream, sp_handshake, sizeof(sp_handshake));
    if (result < 0) {
        sp_free(sp);
        return result;
    }
    loop_timer_arm(sp->handshake_timer, handshake_timeout_ms);
    stream_start(own_stream, &sp_stream_events, sp);
    *ret_sp = sp;
    return 0;
}

void sp_set_max_message_bytes(struct sp *sp, size_t max_message_bytes)
{
    sp->max_message_bytes = max_message_bytes;
    if (sp->stream)
        stream_set_queue_max(sp->stream, 2 * max_message_bytes); /* one behind another */
}

int sp_peer_uid(const struct sp *sp, uid_t *ret_uid)
{
    return sp->stream ? stream_peer_uid(sp->stream, ret_uid) : -EPIPE;
}
