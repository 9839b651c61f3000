/* link.c - see link.h. */
#include "link.h"

#include <errno.h>

#include "keep_alive.h"
#include "router_limits.h"

/* What a peer may send before it has said who it is. */
#define GREETING_MAX_BYTES 65536u

enum link_state {
    LINK_GREETING, /* the time for the hello runs */
    LINK_OPEN,     /* messages come; the timer, if armed, watches the silence */
    LINK_BROKEN,   /* `closed` is queued; what comes is dropped */
    LINK_FINISHING /* what is queued goes out; what comes is dropped */
};

struct link {
    struct loop *loop;
    struct sp *sp;
    enum link_state state;
    struct link_timing timing;
    const struct link_events *events;
    void *ctx;

    struct loop_timer *timer;    /* the hello's time, then the silence */
    struct loop_notice breaking; /* deferred: tells `closed` */
    const char *reason;          /* of the break */
    struct keep_alive keep_alive;
    uint64_t ping_id;
    bool challenged;
    bool paused;
    struct buf scratch; /* messages that are encoded whole */
};

void link_break(struct link *link, const char *reason)
{
    if (link->state == LINK_BROKEN)
        return;
    link->state = LINK_BROKEN;
    link->reason = reason;
    loop_timer_disarm(link->timer);
    loop_defer(link->loop, &link->breaking);
}

static void on_breaking(void *ctx)
{
    struct link *link = ctx;

    sp_free(take_ptr(link->sp));
    link->events->closed(link->ctx, true, link->reason); /* may free: nothing follows */
}

/* Liveness. */

static void link_ping(struct link *link)
{
    struct envelope ping = { .kind = ENVELOPE_PING, .id = ++link->ping_id };

    if (link_send_envelope(link, &ping) < 0)
        link_break(link, "a ping could not be queued");
}

static void link_watch_silence(struct link *link)
{
    uint64_t now_ms = loop_now_ms(link->loop);
    enum keep_alive_verdict verdict;
    uint32_t delay_ms;

    if (link->paused)
        keep_alive_heard(&link->keep_alive, now_ms);
    verdict = keep_alive_tick(&link->keep_alive, now_ms, &delay_ms);
    if (verdict == KEEP_ALIVE_LOST) {
        link_break(link, "silent past the keep-alive limit");
        return;
    }
    loop_timer_arm(link->timer, delay_ms);
    if (verdict == KEEP_ALIVE_ASK)
        link_ping(link);
}

static void on_timer(void *ctx)
{
    struct link *link = ctx;

    if (link->state == LINK_GREETING)
        link_break(link, "no hello in time");
    else if (link->state == LINK_OPEN)
        link_watch_silence(link);
}

void link_greeted(struct link *link, bool watch)
{
    if (link->state != LINK_GREETING)
        return;
    link->state = LINK_OPEN;
    if (!watch) {
        loop_timer_disarm(link->timer);
        return;
    }
    link->keep_alive = (struct keep_alive){ .interval_ms = link->timing.ping_interval_ms,
                                            .spans_max = link->timing.ping_misses_max };
    keep_alive_start(&link->keep_alive, loop_now_ms(link->loop));
    loop_timer_arm(link->timer, link->timing.ping_interval_ms);
}

void link_challenge(struct link *link)
{
    link->challenged = true;
    if (link->state == LINK_OPEN)
        link_ping(link);
}

static void link_heard(struct link *link)
{
    keep_alive_heard(&link->keep_alive, loop_now_ms(link->loop));
    if (!link->challenged)
        return;
    link->challenged = false;
    link->events->alive(link->ctx);
}

/* What comes. */

static void link_answer_ping(struct link *link, uint64_t id)
{
    struct envelope pong = { .kind = ENVELOPE_PONG, .id = id };

    if (link_queued_bytes(link) > NATIVE_PONG_QUEUE_BYTES)
        return;
    if (link_send_envelope(link, &pong) < 0)
        link_break(link, "a pong could not be queued");
}

static void on_message(void *ctx, uint8_t *data, size_t size)
{
    struct link *link = ctx;
    struct envelope envelope;
    const char *reason = "unknown kind of message";

    if (link->state == LINK_BROKEN || link->state == LINK_FINISHING)
        return;
    if (envelope_decode(data, size, &envelope, &reason) < 0) {
        link_break(link, reason);
        return;
    }
    link_heard(link);
    if (link->state == LINK_BROKEN || link->state == LINK_FINISHING)
        return;
    if (envelope.kind == ENVELOPE_PONG)
        return;
    if (envelope.kind == ENVELOPE_PING)
        link_answer_ping(link, envelope.id);
    else
        link->events->message(link->ctx, &envelope, data, size); /* may free */
}

static void on_drained(void *ctx)
{
    struct link *link = ctx;

    if (link->events->drained)
        link->events->drained(link->ctx);
}

static void on_closed(void *ctx, int error, const char *reason)
{
    struct link *link = ctx;
    bool by_us = error == -EPROTO || error == -EMSGSIZE || error == -ETIMEDOUT;

    if (link->state == LINK_BROKEN)
        return; /* `closed` is queued already, with a better reason */
    link->state = LINK_BROKEN;
    loop_timer_disarm(link->timer);
    link->events->closed(link->ctx, by_us, reason); /* may free: nothing follows */
}

/* Sending. */

int link_sendv(struct link *link, const struct iovec *parts, int count)
{
    if (!link->sp || link->state == LINK_BROKEN || link->state == LINK_FINISHING)
        return -EPIPE;
    return sp_sendv(link->sp, parts, count);
}

int link_send(struct link *link, const void *data, size_t size)
{
    struct iovec part = { .iov_base = (void *)data, .iov_len = size };

    return link_sendv(link, &part, 1);
}

int link_send_envelope(struct link *link, const struct envelope *envelope)
{
    int result;

    buf_clear(&link->scratch);
    result = envelope_encode(envelope, &link->scratch);
    if (result < 0)
        return result;
    return link_send(link, link->scratch.data, link->scratch.size);
}

size_t link_queued_bytes(const struct link *link)
{
    return link->sp ? sp_queued_bytes(link->sp) : 0;
}

void link_pause(struct link *link)
{
    link->paused = true;
    if (link->sp)
        sp_pause(link->sp);
}

void link_resume(struct link *link)
{
    if (!link->paused)
        return;
    link->paused = false;
    keep_alive_heard(&link->keep_alive, loop_now_ms(link->loop));
    if (link->sp)
        sp_resume(link->sp);
}

void link_finish(struct link *link, uint32_t linger_ms)
{
    if (link->state == LINK_BROKEN || link->state == LINK_FINISHING)
        return;
    link->state = LINK_FINISHING;
    loop_timer_disarm(link->timer);
    sp_finish(link->sp, linger_ms);
}

int link_peer_uid(const struct link *link, uid_t *ret_uid)
{
    return link->sp ? sp_peer_uid(link->sp, ret_uid) : -EPIPE;
}

void link_set_max_message_bytes(struct link *link, size_t max_message_bytes)
{
    if (link->sp)
        sp_set_max_message_bytes(link->sp, max_message_bytes);
}

/* Life. */

static const struct sp_events link_sp_events = {
    .message = on_message,
    .drained = on_drained,
    .closed = on_closed,
};

void link_free(struct link *link)
{
    if (!link)
        return;
    sp_free(link->sp);
    loop_timer_free(link->timer);
    loop_notice_cancel(link->loop, &link->breaking);
    buf_done(&link->scratch);
    free(link);
}

static struct link_timing timing_with_defaults(const struct link_timing *timing)
{
    struct link_timing result = *timing;

    if (result.hello_timeout_ms == 0)
        result.hello_timeout_ms = NATIVE_HELLO_TIMEOUT_MS;
    if (result.ping_interval_ms == 0)
        result.ping_interval_ms = PING_INTERVAL_MS;
    if (result.ping_misses_max == 0)
        result.ping_misses_max = PING_MISSES_MAX;
    return result;
}

int link_new(struct loop *loop, struct stream *own_stream, enum sp_mapping mapping,
             const struct link_timing *timing, const struct link_events *events, void *ctx,
             struct link **ret_link)
{
    struct link *link = calloc(1, sizeof(*link));
    int result;

    if (!link) {
        stream_free(own_stream);
        return -ENOMEM;
    }
    *link = (struct link){
        .loop = loop,
        .timing = timing_with_defaults(timing),
        .events = events,
        .ctx = ctx,
    };
    loop_notice_init(&link->breaking, on_breaking, link);
    result = sp_new(loop, own_stream, mapping, GREETING_MAX_BYTES,
                    link->timing.hello_timeout_ms, &link_sp_events, link, &link->sp);
    if (result == 0)
        result = loop_timer_new(loop, on_timer, link, &link->timer);
    if (result < 0) {
        link_free(link);
        return result;
    }
    loop_timer_arm(link->timer, link->timing.hello_timeout_ms);
    *ret_link = link;
    return 0;
}
