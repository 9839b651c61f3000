/* web_connection.c - the way in: head, frames, pauses; and the states. The way out is in
 * web_send.c. */
#include "web_connection.h"

#include <assert.h>
#include <errno.h>

#include "log.h"
#include "web_connection_state.h"

static const bool moves[WEB_STATE_MAX][WEB_STATE_MAX] = {
    [WEB_REQUEST] = { [WEB_ANSWERED] = true, [WEB_OPEN] = true, [WEB_GONE] = true },
    [WEB_ANSWERED] = { [WEB_LEAVING] = true, [WEB_GONE] = true },
    [WEB_OPEN] = { [WEB_CLOSING] = true, [WEB_LEAVING] = true, [WEB_GONE] = true },
    [WEB_CLOSING] = { [WEB_LEAVING] = true, [WEB_GONE] = true },
    [WEB_LEAVING] = { [WEB_GONE] = true },
};

void web_connection_set_state(struct web_connection *connection, enum web_state state)
{
    bool allowed = moves[connection->state][state];

    assert(allowed);
    (void)allowed; /* with NDEBUG */
    if (connection->state == WEB_REQUEST)
        connection->shared->events->greeted(connection->shared->ctx, connection);
    connection->state = state;
    if (state > WEB_OPEN)
        loop_defer(connection->shared->loop, &connection->settle);
}

enum web_state web_connection_state(const struct web_connection *connection)
{
    return connection->state;
}

struct list *web_connection_node(struct web_connection *connection)
{
    return &connection->node;
}

struct web_connection *web_connection_of(struct list *node)
{
    return LIST_ENTRY(node, struct web_connection, node);
}

static bool may_log_end(struct web_connection *connection)
{
    struct web_connection_shared *shared = connection->shared;

    return log_limit_pass(&shared->ends, loop_now_ms(shared->loop));
}

void web_connection_drop(struct web_connection *connection, const char *reason)
{
    if (connection->state == WEB_GONE)
        return;
    connection->shared->counters->dropped++;
    if (may_log_end(connection))
        log_event(LOG_INFO, "web_dropped",
                  log_text("role", web_connection_role_name(connection)),
                  log_text("reason", reason));
    web_connection_set_state(connection, WEB_GONE);
}

const char *web_connection_role_name(const struct web_connection *connection)
{
    return connection->role ? connection->role->name : "http";
}

/* The peer's close frame: answered in this turn, then TCP ends. */
static void peer_closed(struct web_connection *connection, const struct websocket_event *event)
{
    bool is_echo = connection->state == WEB_CLOSING;

    connection->end_code = event->code;
    if (!is_echo)
        web_connection_echo_close(connection, event->code);
    web_connection_leave(connection);
}

/* A breach of the protocol: the close frame that names it, and no more. */
static void peer_failed(struct web_connection *connection, const struct websocket_event *event)
{
    connection->shared->counters->dropped++;
    if (may_log_end(connection))
        log_event(LOG_WARN, "web_breach",
                  log_text("role", web_connection_role_name(connection)),
                  log_text("reason", event->reason), log_uint("code", event->code));
    if (connection->state == WEB_CLOSING) {
        web_connection_leave(connection);
        return;
    }
    web_connection_forget_queue(connection);
    web_connection_close(connection, event->code, event->reason, WEB_CLOSE_WAIT_MS);
}

static void handle(struct web_connection *connection, const struct websocket_event *event)
{
    switch (event->kind) {
    case WEBSOCKET_EVENT_MESSAGE:
        if (connection->state == WEB_OPEN && !connection->role->discards)
            connection->role->message(connection->role_ctx, event->is_text, event->data,
                                      event->size);
        break;
    case WEBSOCKET_EVENT_PING:
        if (connection->state == WEB_OPEN)
            web_connection_control(connection, WEBSOCKET_PONG, event->data, event->size);
        break;
    case WEBSOCKET_EVENT_CLOSE:
        peer_closed(connection, event);
        break;
    case WEBSOCKET_EVENT_FAILED:
        peer_failed(connection, event);
        break;
    case WEBSOCKET_EVENT_PONG:
    case WEBSOCKET_EVENT_NONE:
        break;
    }
}

static bool takes_frames(const struct web_connection *connection)
{
    return (connection->state == WEB_OPEN && connection->pauses == 0) ||
           connection->state == WEB_CLOSING;
}

/* Keeps the count of bytes of unfinished messages; false: all together hold too much. */
static bool count_partial(struct web_connection *connection)
{
    size_t held = websocket_held_bytes(&connection->ws);

    connection->shared->partial_bytes += held - connection->partial_bytes;
    connection->partial_bytes = held;
    return connection->shared->partial_bytes <= WEB_PARTIAL_TOTAL_BYTES;
}

/* Takes frames off the bytes while the connection takes any; the result is what is left. */
static size_t decode(struct web_connection *connection, const uint8_t *data, size_t size)
{
    while (takes_frames(connection)) {
        struct websocket_event event;

        if (websocket_next(&connection->ws, &data, &size, &event) < 0) {
            web_connection_drop(connection, "no memory");
            break;
        }
        if (event.kind == WEBSOCKET_EVENT_NONE)
            break;
        handle(connection, &event);
    }
    if (connection->state == WEB_OPEN && !count_partial(connection)) {
        web_connection_forget_queue(connection);
        web_connection_close(connection, WEBSOCKET_CLOSE_TOO_BIG,
                             "too much is held of unfinished messages", WEB_CLOSE_WAIT_MS);
    }
    return size;
}

/* It is two reads of the stream at most. */
static void hold(struct web_connection *connection, const uint8_t *data, size_t size)
{
    if (connection->state != WEB_GONE && buf_append(&connection->held, data, size) < 0)
        web_connection_drop(connection, "no memory");
}

/* What a pause has left over is kept. */
static void take_frames(struct web_connection *connection, const uint8_t *data, size_t size)
{
    size_t left = decode(connection, data, size);

    if (connection->state == WEB_OPEN && left > 0)
        hold(connection, data + size - left, left);
}

static void take_head(struct web_connection *connection, const uint8_t *data, size_t size)
{
    struct http_head *head = &connection->head;
    size_t used = 0;

    if (http_head_feed(head, data, size, &used) < 0) {
        web_connection_drop(connection, "no memory");
        return;
    }
    if (head->state == HTTP_HEAD_OPEN)
        return;
    connection->more_may_come = head->state != HTTP_HEAD_COMPLETE || used < size;
    connection->shared->events->request(connection->shared->ctx, connection, head);
    http_head_done(head);
    if (connection->state == WEB_OPEN)
        take_frames(connection, data + used, size - used);
}

static void on_data(void *ctx, uint8_t *data, size_t size)
{
    struct web_connection *connection = ctx;

    connection->shared->counters->received_bytes += size;
    connection->heard_ms = loop_now_ms(connection->shared->loop);
    connection->misses = 0;
    if (connection->state == WEB_REQUEST)
        take_head(connection, data, size);
    else if (connection->held.size > 0)
        hold(connection, data, size);
    else
        take_frames(connection, data, size);
}

static void on_closed(void *ctx, int error)
{
    struct web_connection *connection = ctx;

    if (connection->state != WEB_GONE)
        web_connection_set_state(connection, WEB_GONE);
}

static void on_stream_drained(void *ctx)
{
    struct web_connection *connection = ctx;

    web_connection_flush(connection);
    if (!connection->full || web_connection_is_full(connection))
        return;
    connection->full = false;
    if (connection->state == WEB_OPEN && connection->role->drained)
        connection->role->drained(connection->role_ctx);
}

/* Pauses. */

static void pause_for(struct web_connection *connection, unsigned reason)
{
    connection->pauses |= reason;
    if (connection->state == WEB_OPEN)
        stream_pause(connection->stream);
}

static void resume_for(struct web_connection *connection, unsigned reason)
{
    if (!(connection->pauses & reason))
        return;
    connection->pauses &= ~reason;
    if (connection->pauses == 0)
        loop_defer(connection->shared->loop, &connection->settle);
}

void web_connection_pause(struct web_connection *connection)
{
    pause_for(connection, WEB_PAUSED_BY_ROLE);
}

void web_connection_resume(struct web_connection *connection)
{
    resume_for(connection, WEB_PAUSED_BY_ROLE);
}

/* What was held comes first; the stream only when nothing of it is left. */
static void read_on(struct web_connection *connection)
{
    struct buf held = connection->held;

    connection->held = (struct buf){ 0 };
    if (held.size > 0)
        take_frames(connection, held.data, held.size);
    buf_done(&held);
    if (takes_frames(connection))
        stream_resume(connection->stream);
}

/* The backlog's view. */

static size_t backlog_queued_bytes(void *ctx)
{
    struct web_connection *connection = ctx;

    return connection->queued_bytes +
           (connection->state == WEB_GONE ? 0 : stream_queued_bytes(connection->stream));
}

static void backlog_pause(void *ctx)
{
    pause_for(ctx, WEB_PAUSED_BY_BACKLOG);
}

static void backlog_resume(void *ctx)
{
    resume_for(ctx, WEB_PAUSED_BY_BACKLOG);
}

static void backlog_drop(void *ctx, const char *reason)
{
    web_connection_drop(ctx, reason);
}

static const struct backlog_ops backlog_ops = {
    .queued_bytes = backlog_queued_bytes,
    .pause = backlog_pause,
    .resume = backlog_resume,
    .drop = backlog_drop,
};

/* Time. */

/* The peer of a paused connection may have said much that we did not read. */
static void look_into_silence(struct web_connection *connection)
{
    uint64_t now_ms = loop_now_ms(connection->shared->loop);
    uint64_t limit_ms = (uint64_t)WEB_PING_INTERVAL_MS * (connection->misses + 1);
    uint64_t silent_ms;

    if (connection->pauses != 0)
        connection->heard_ms = now_ms;
    silent_ms = now_ms - connection->heard_ms;
    if (silent_ms < limit_ms) {
        loop_timer_arm(connection->timer, limit_ms - silent_ms);
        return;
    }
    if (connection->misses == WEB_PING_MISSES_MAX) {
        web_connection_drop(connection, "answers no ping");
        return;
    }
    connection->misses++;
    loop_timer_arm(connection->timer, WEB_PING_INTERVAL_MS);
    web_connection_control(connection, WEBSOCKET_PING, NULL, 0);
}

static void on_timer(void *ctx)
{
    struct web_connection *connection = ctx;

    switch (connection->state) {
    case WEB_REQUEST:
        web_connection_drop(connection, "no request in time");
        break;
    case WEB_ANSWERED:
        web_connection_leave(connection);
        break;
    case WEB_OPEN:
        look_into_silence(connection);
        break;
    case WEB_CLOSING:
        web_connection_leave(connection);
        break;
    default:
        break;
    }
}

/* Life. */

static void tell_role(struct web_connection *connection)
{
    const struct web_role *role = connection->role;

    connection->role = NULL;
    if (role && role->gone)
        role->gone(connection->role_ctx, connection->end_code);
}

void web_connection_free(struct web_connection *connection)
{
    if (!connection)
        return;
    connection->shared->partial_bytes -= connection->partial_bytes;
    tell_role(connection);
    backlog_leave(&connection->backlog);
    loop_notice_cancel(connection->shared->loop, &connection->settle);
    loop_timer_free(connection->timer);
    stream_free(connection->stream);
    web_connection_forget_queue(connection);
    web_out_free(connection->current);
    websocket_done(&connection->ws);
    http_head_done(&connection->head);
    buf_done(&connection->held);
    list_remove(&connection->node);
    free(connection);
}

/* The end of a turn in which something changed that others must hear of. */
static void on_settle(void *ctx)
{
    struct web_connection *connection = ctx;

    if (takes_frames(connection))
        read_on(connection);
    if (connection->state > WEB_OPEN)
        tell_role(connection);
    if (connection->state != WEB_GONE)
        return;
    connection->shared->events->freed(connection->shared->ctx, connection);
    web_connection_free(connection);
}

static const struct stream_events stream_events = {
    .data = on_data,
    .drained = on_stream_drained,
    .closed = on_closed,
};

int web_connection_new(struct web_connection_shared *shared, struct stream *own_stream,
                       struct web_connection **ret_connection)
{
    struct web_connection *connection = calloc(1, sizeof(*connection));
    int result = connection ? 0 : -ENOMEM;

    if (result == 0)
        result = loop_timer_new(shared->loop, on_timer, connection, &connection->timer);
    if (result < 0) {
        free(connection);
        stream_free(own_stream);
        return result;
    }
    connection->shared = shared;
    connection->stream = own_stream;
    connection->end_code = WEB_CODE_LOST;
    connection->more_may_come = true;
    list_init(&connection->node);
    list_init(&connection->queue);
    loop_notice_init(&connection->settle, on_settle, connection);
    backlog_join(shared->backlog, &connection->backlog, &backlog_ops, connection);
    loop_timer_arm(connection->timer, WEB_HEAD_TIMEOUT_MS);
    stream_start(own_stream, &stream_events, connection);
    *ret_connection = connection;
    return 0;
}
