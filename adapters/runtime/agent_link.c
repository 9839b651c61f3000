/* agent_link.c - socket, greeting and keep-alive of the link; the calls are in agent_call.c.
 *
 * Callbacks may free the link: every path that runs one is bracketed by enter and leave, and
 * the last leave releases the memory. */
#include "agent_link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent_link_state.h"
#include "codec.h"
#include "log.h"

#define READ_BYTES (256u * 1024)
/* Control frames may go on where calls are refused already; past this the guest does not read.
 */
#define QUEUE_HARD_MAX_BYTES (AGENT_LINK_QUEUE_MAX_BYTES + 32u * 1024 * 1024)
#define SETTLE_PING_ID 1u
#define KEEP_BYTES (256u * 1024) /* of an idle buffer */
#define REST_MS 1000u /* a mailbox without use gives its memory back after one or two */

static const char *const state_names[] = {
    [AGENT_LINK_GREETING] = "greeting",       [AGENT_LINK_GREETED] = "greeted",
    [AGENT_LINK_CONFIGURING] = "configuring", [AGENT_LINK_READY] = "ready",
    [AGENT_LINK_SILENT] = "silent",           [AGENT_LINK_CLOSED] = "closed",
};
static_assert(ARRAY_SIZE(state_names) == AGENT_LINK_STATE_MAX, "a name for each state");

#define TO(state) (1u << (state))
static const unsigned state_moves[] = {
    [AGENT_LINK_GREETING] = TO(AGENT_LINK_GREETED) | TO(AGENT_LINK_CLOSED),
    [AGENT_LINK_GREETED] = TO(AGENT_LINK_CONFIGURING) | TO(AGENT_LINK_CLOSED),
    [AGENT_LINK_CONFIGURING] = TO(AGENT_LINK_READY) | TO(AGENT_LINK_CLOSED),
    [AGENT_LINK_READY] = TO(AGENT_LINK_SILENT) | TO(AGENT_LINK_CLOSED),
    [AGENT_LINK_SILENT] = TO(AGENT_LINK_READY) | TO(AGENT_LINK_CLOSED),
    [AGENT_LINK_CLOSED] = 0,
};
static_assert(ARRAY_SIZE(state_moves) == AGENT_LINK_STATE_MAX, "moves of each state");

static void link_set_state(struct agent_link *link, enum agent_link_state state)
{
    assert(state_moves[link->state] & TO(state));
    log_event(LOG_DEBUG, "agent_link_state", log_int("fd", link->fd),
              log_text("from", state_names[link->state]), log_text("to", state_names[state]));
    link->state = state;
}

void agent_link_enter(struct agent_link *link)
{
    link->busy++;
}

static void link_release(struct agent_link *link)
{
    agent_call_free_all(link);
    loop_notice_cancel(link->loop, &link->flush);
    loop_timer_free(link->watch);
    loop_io_free(link->io);
    loop_timer_free(link->rest);
    mailbox_done(&link->mailbox);
    closep(&link->fd);
    buf_done(&link->in);
    buf_done(&link->out);
    free(link);
}

void agent_link_leave(struct agent_link *link)
{
    assert(link->busy > 0);
    if (--link->busy == 0 && !link->events)
        link_release(link);
}

/* From a callback of the loop only. */
static void link_close(struct agent_link *link, const char *reason)
{
    if (link->state == AGENT_LINK_CLOSED)
        return;
    link_set_state(link, AGENT_LINK_CLOSED);
    loop_timer_disarm(link->watch);
    loop_timer_disarm(link->rest);
    loop_notice_cancel(link->loop, &link->flush);
    loop_io_free(link->io);
    link->io = NULL;
    closep(&link->fd);
    agent_link_fail_calls(link, reason);
    agent_call_free_all(link);
    if (link->events)
        link->events->closed(link->ctx, reason);
}

static void link_breach(struct agent_link *link, const char *what)
{
    char reason[AGENT_LINK_REASON_MAX];

    (void)snprintf(reason, sizeof(reason), "the guest agent broke the protocol: %s", what);
    link_close(link, reason);
}

/* Sending. */

size_t agent_link_queued(const struct agent_link *link)
{
    return link->out.size - link->out_sent;
}

static void link_fail_later(struct agent_link *link, const char *failure)
{
    if (!link->failure)
        link->failure = failure;
    loop_defer(link->loop, &link->flush);
}

/* Whatever was appended is on its way; RESULT of the appending decides. */
static void link_queued(struct agent_link *link, int result)
{
    if (result == -ENOBUFS)
        link_fail_later(link, "the guest agent does not read what it is sent");
    else if (result < 0)
        link_fail_later(link, "out of memory");
    else if (!link->want_write)
        loop_defer(link->loop, &link->flush);
}

void agent_link_send(struct agent_link *link, const struct agent_frame *frame)
{
    if (link->state != AGENT_LINK_CLOSED)
        link_queued(link, agent_frame_encode(frame, &link->out));
}

void agent_link_send_soon(struct agent_link *link)
{
    if (link->state != AGENT_LINK_CLOSED && !link->want_write)
        loop_defer(link->loop, &link->flush);
}

int agent_link_send_map(struct agent_link *link, enum agent_frame_kind kind, uint64_t id,
                        const char *operation, const struct type *type, const void *value)
{
    size_t start = link->out.size;
    int result = agent_frame_begin(kind, id, operation, &link->out, &start);

    if (result == 0)
        result = codec_encode_msgpack(type, value, &link->out);
    if (result == 0)
        result = agent_frame_finish(&link->out, start);
    if (result < 0) {
        link->out.size = start;
        return result;
    }
    link_queued(link, 0);
    return 0;
}

static void link_want_write(struct agent_link *link, bool want)
{
    if (link->want_write == want)
        return;
    link->want_write = want;
    if (loop_io_set_events(link->io, want ? EPOLLIN | EPOLLOUT : EPOLLIN) < 0)
        link_fail_later(link, "the loop refuses to watch the connection");
}

/* The bytes up to out_sent have left. */
static void link_sent(struct agent_link *link)
{
    if (agent_link_queued(link) > 0) {
        if (link->out_sent > link->out.size / 2) {
            buf_consume(&link->out, link->out_sent);
            link->out_sent = 0;
        }
        return;
    }
    link->out_sent = 0;
    buf_clear(&link->out);
    if (link->out.capacity > KEEP_BYTES)
        buf_done(&link->out);
}

static void link_write(struct agent_link *link)
{
    agent_call_send_filling(link);
    while (agent_link_queued(link) > 0) {
        ssize_t size = send(link->fd, link->out.data + link->out_sent, agent_link_queued(link),
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EAGAIN)
            break;
        if (size < 0) {
            link_close(link, "the connection to the guest agent broke");
            return;
        }
        link->out_sent += (size_t)size;
    }
    link_sent(link);
    link_want_write(link, agent_link_queued(link) > 0);
    if (agent_link_queued(link) < AGENT_LINK_STREAM_QUEUE_BYTES / 2)
        agent_call_resume_all(link);
}

static void on_flush(void *ctx)
{
    struct agent_link *link = ctx;

    agent_link_enter(link);
    if (link->failure)
        link_close(link, link->failure);
    else
        link_write(link);
    agent_link_leave(link);
}

/* Greeting. */

static const char *take_hello(struct agent_link *link, const struct agent_frame *frame)
{
    struct guest_hello hello;

    if (link->state != AGENT_LINK_GREETING)
        return "a second HELLO";
    if (codec_decode_msgpack(&type_guest_hello, (const uint8_t *)frame->body.data,
                             frame->body.size, &hello) < 0)
        return "a malformed HELLO";
    link->wide = hello.protocol_minor >= AGENT_WIDE_MINOR;
    if (!mailbox_fits(&link->mailbox, &hello))
        mailbox_done(&link->mailbox);
    link_set_state(link, AGENT_LINK_GREETED);
    link->events->greeted(link->ctx, &hello);
    codec_free(&type_guest_hello, &hello);
    return NULL;
}

void agent_link_configure(struct agent_link *link, const struct guest_configure *configure)
{
    struct guest_configure with_mailbox = *configure;
    int result;

    if (link->state == AGENT_LINK_CLOSED)
        return;
    link_set_state(link, AGENT_LINK_CONFIGURING);
    if (link->mailbox.fd >= 0) {
        with_mailbox.has_mailbox = with_mailbox.mailbox = true;
        mailbox_turn_on(&link->mailbox);
    }
    result = agent_link_send_map(link, AGENT_FRAME_CONFIGURE, 0, NULL, &type_guest_configure,
                                 &with_mailbox);
    if (result < 0)
        link_fail_later(link, "the configuration of the guest cannot be encoded");
}

void agent_link_settle(struct agent_link *link)
{
    const struct agent_frame ping = { .kind = AGENT_FRAME_PING, .id = SETTLE_PING_ID };

    link->settling = true;
    agent_link_send(link, &ping);
}

/* Those of the keep-alive have no id; what nobody has asked for is no answer. */
static void take_pong(struct agent_link *link, uint64_t id)
{
    if (id != SETTLE_PING_ID || !link->settling)
        return;
    link->settling = false;
    link->events->settled(link->ctx);
}

static const char *take_ready(struct agent_link *link)
{
    if (link->state != AGENT_LINK_CONFIGURING)
        return "READY that nobody waits for";
    link_set_state(link, AGENT_LINK_READY);
    link->keep_alive = (struct keep_alive){ .interval_ms = AGENT_LINK_PING_MS,
                                            .spans_max = AGENT_LINK_SILENCES_MAX };
    keep_alive_start(&link->keep_alive, loop_now_ms(link->loop));
    loop_timer_arm(link->watch, AGENT_LINK_PING_MS);
    link->events->ready(link->ctx);
    return NULL;
}

/* Keep-alive. */

void agent_link_fall_silent(struct agent_link *link, const char *reason)
{
    if (link->state != AGENT_LINK_READY)
        return;
    agent_link_enter(link);
    link_set_state(link, AGENT_LINK_SILENT);
    link->events->silent(link->ctx);
    agent_link_fail_calls(link, reason);
    agent_link_leave(link);
}

/* A frame came and was dealt with. */
static void link_heard(struct agent_link *link)
{
    keep_alive_heard(&link->keep_alive, loop_now_ms(link->loop));
    if (link->state != AGENT_LINK_SILENT || link->given_up > 0)
        return;
    link_set_state(link, AGENT_LINK_READY);
    link->events->awake(link->ctx);
}

/* A queue that is stuck holds questions enough, so nothing is added to it. */
static void on_watch(void *ctx)
{
    struct agent_link *link = ctx;
    struct agent_frame ping = { .kind = AGENT_FRAME_PING };
    uint32_t delay_ms;
    enum keep_alive_verdict verdict = keep_alive_tick(&link->keep_alive,
                                                      loop_now_ms(link->loop), &delay_ms);

    loop_timer_arm(link->watch, delay_ms);
    if (verdict == KEEP_ALIVE_WAIT)
        return;
    if (agent_link_queued(link) == 0)
        agent_link_send(link, &ping); /* also when it is silent: that wakes it */
    if (verdict == KEEP_ALIVE_LOST)
        agent_link_fall_silent(link, "the guest agent has been silent for 15 s");
}

/* The mailbox. */

void agent_link_set_mailbox(struct agent_link *link, int own_fd)
{
    assert(link->state == AGENT_LINK_GREETING);
    mailbox_done(&link->mailbox);
    mailbox_init(&link->mailbox, own_fd);
}

static void link_send_return(struct agent_link *link, bool idle)
{
    struct agent_frame frame = { .kind = AGENT_FRAME_RETURN,
                                 .slots = mailbox_take_owed(&link->mailbox),
                                 .idle = idle };

    agent_link_send(link, &frame);
}

/* With whatever wakes the guest anyway, or when there are many: it has as many others. */
void agent_link_return_slots(struct agent_link *link, bool force)
{
    if (mailbox_owes_much(&link->mailbox) || (force && mailbox_owes(&link->mailbox)))
        link_send_return(link, false);
}

void agent_link_use_mailbox(struct agent_link *link)
{
    if (!loop_timer_armed(link->rest))
        loop_timer_arm(link->rest, REST_MS);
}

static void on_rest(void *ctx)
{
    struct agent_link *link = ctx;

    if (mailbox_rest(&link->mailbox))
        link_send_return(link, true);
    else
        loop_timer_arm(link->rest, REST_MS);
}

/* Receiving. */

/* One that asks but does not read gets no further answers. */
static void take_ping(struct agent_link *link, uint64_t id)
{
    struct agent_frame pong = { .kind = AGENT_FRAME_PONG, .id = id };

    if (agent_link_queued(link) < AGENT_LINK_STREAM_QUEUE_BYTES)
        agent_link_send(link, &pong);
}

static const char *link_dispatch(struct agent_link *link, const struct agent_frame *frame)
{
    if (link->state == AGENT_LINK_GREETING && frame->kind != AGENT_FRAME_HELLO)
        return "something ahead of HELLO";
    switch (frame->kind) {
    case AGENT_FRAME_HELLO:
        return take_hello(link, frame);
    case AGENT_FRAME_READY:
        return take_ready(link);
    case AGENT_FRAME_PING:
        take_ping(link, frame->id);
        return NULL;
    case AGENT_FRAME_PONG:
        take_pong(link, frame->id);
        return NULL;
    case AGENT_FRAME_RETURN:
        return mailbox_returned(&link->mailbox, frame->slots);
    case AGENT_FRAME_CONFIGURE:
    case AGENT_FRAME_CALL:
    case AGENT_FRAME_CANCEL:
        return "a frame that only the host sends";
    default:
        return agent_call_frame(link, frame);
    }
}

static void link_take_frame(struct agent_link *link, const uint8_t *data, size_t size)
{
    struct agent_frame frame;
    const char *breach = NULL;

    if (agent_frame_decode(data, size, &frame, &breach) == 0)
        breach = link_dispatch(link, &frame);
    if (!link->events)
        return;
    if (breach)
        link_breach(link, breach);
    else
        link_heard(link);
}

/* Takes all whole frames; how many bytes they were. */
static size_t link_parse(struct agent_link *link, const uint8_t *data, size_t size)
{
    size_t at = 0;

    while (link->events && link->state != AGENT_LINK_CLOSED &&
           size - at >= AGENT_FRAME_PREFIX_BYTES) {
        size_t frame_size = agent_frame_size(data + at);

        if (frame_size > AGENT_FRAME_MAX_BYTES) {
            link_breach(link, "a frame over the limit");
            break;
        }
        if (size - at - AGENT_FRAME_PREFIX_BYTES < frame_size)
            break;
        at += AGENT_FRAME_PREFIX_BYTES;
        link_take_frame(link, data + at, frame_size);
        at += frame_size;
    }
    return at;
}

/* Most reads hold whole frames, which are taken where they lie; only a torn one is kept. */
static void link_take_bytes(struct agent_link *link, const uint8_t *data, size_t size)
{
    size_t used;
    int result = 0;

    if (link->in.size == 0) {
        used = link_parse(link, data, size);
        result = buf_append(&link->in, data + used, size - used);
    } else {
        result = buf_append(&link->in, data, size);
        if (result == 0)
            buf_consume(&link->in, link_parse(link, link->in.data, link->in.size));
    }
    if (link->in.size == 0 && link->in.capacity > KEEP_BYTES)
        buf_done(&link->in);
    if (result < 0)
        link_close(link, "out of memory");
}

static void link_read(struct agent_link *link)
{
    static uint8_t bytes[READ_BYTES]; /* the loop's thread only, and never nested */
    ssize_t size = recv(link->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (size > 0)
        link_take_bytes(link, bytes, (size_t)size);
    else if (size == 0)
        link_close(link, "the guest agent closed the connection");
    else if (errno != EAGAIN && errno != EINTR)
        link_close(link, "the connection to the guest agent broke");
}

static void on_io(void *ctx, uint32_t events)
{
    struct agent_link *link = ctx;

    agent_link_enter(link);
    if (events & EPOLLOUT)
        link_write(link);
    if (link->state != AGENT_LINK_CLOSED && (events & ~(uint32_t)EPOLLOUT))
        link_read(link);
    agent_link_leave(link);
}

/* Birth and death. */

static int link_open(struct agent_link *link)
{
    int flags = fcntl(link->fd, F_GETFL);
    int result;

    if (flags < 0 || fcntl(link->fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    result = loop_timer_new(link->loop, on_watch, link, &link->watch);
    if (result == 0)
        result = loop_timer_new(link->loop, on_rest, link, &link->rest);
    if (result < 0)
        return result;
    return loop_io_new(link->loop, link->fd, EPOLLIN, on_io, link, &link->io);
}

int agent_link_new(struct loop *loop, int own_fd, const struct agent_link_events *events,
                   void *ctx, struct agent_link **ret_link)
{
    struct agent_link *link = calloc(1, sizeof(*link));
    int result;

    if (!link) {
        closep(&own_fd);
        return -ENOMEM;
    }
    link->loop = loop;
    link->fd = own_fd;
    link->mailbox = MAILBOX_NONE;
    link->events = events;
    link->ctx = ctx;
    link->state = AGENT_LINK_GREETING;
    link->out.limit = QUEUE_HARD_MAX_BYTES;
    link->next_id = 1;
    loop_notice_init(&link->flush, on_flush, link);
    for (size_t i = 0; i < AGENT_LINK_BUCKETS; i++)
        list_init(&link->calls[i]);
    result = link_open(link);
    if (result < 0) {
        link_release(link);
        return result;
    }
    *ret_link = link;
    return 0;
}

void agent_link_free(struct agent_link *link)
{
    if (!link || !link->events)
        return;
    agent_link_enter(link);
    agent_link_fail_calls(link, "the connection to the guest was given up");
    link->events = NULL;
    if (link->state != AGENT_LINK_CLOSED) {
        link_set_state(link, AGENT_LINK_CLOSED);
        loop_timer_disarm(link->watch);
        loop_timer_disarm(link->rest);
        loop_notice_cancel(link->loop, &link->flush);
        loop_io_free(link->io);
        link->io = NULL;
        closep(&link->fd);
    }
    agent_link_leave(link);
}
