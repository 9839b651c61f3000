/* web_send.c - the way out of a connection: the out-queue, answers, close frames.
 *
 * The stream gets no more than its high-water mark at a time, so that a pong overtakes the
 * messages that wait here. A frame that was begun is always sent whole. */
#include <string.h>

#include "web_connection_state.h"

#define PIECE_BYTES (256u * 1024)

/* The queue. */

void web_out_free(struct web_out *out)
{
    free(out);
}

void web_connection_forget_queue(struct web_connection *connection)
{
    struct list *node;

    while ((node = list_pop(&connection->queue))) {
        struct web_out *out = LIST_ENTRY(node, struct web_out, node);

        connection->queued_bytes -= out->size;
        web_out_free(out);
    }
}

static struct web_out *next_out(struct web_connection *connection)
{
    struct list *node;

    if (!connection->current) {
        node = list_pop(&connection->queue);
        connection->current = node ? LIST_ENTRY(node, struct web_out, node) : NULL;
    }
    return connection->current;
}

/* Gives the stream one piece; false: there is none, or the stream is gone. */
static bool send_piece(struct web_connection *connection)
{
    struct web_out *out = next_out(connection);
    size_t size;

    if (!out)
        return false;
    size = out->size - out->sent;
    if (size > PIECE_BYTES)
        size = PIECE_BYTES;
    if (stream_send(connection->stream, out->data + out->sent, size) < 0)
        return false; /* its `closed` is on the way */
    out->sent += size;
    connection->queued_bytes -= size;
    connection->shared->counters->sent_bytes += size;
    if (out->sent == out->size)
        web_out_free(take_ptr(connection->current));
    return true;
}

static bool stream_is_full(const struct web_connection *connection)
{
    return stream_queued_bytes(connection->stream) > STREAM_HIGH_WATER_BYTES;
}

/* Our close frame is with the stream: from now on the peer has close_wait_ms to answer. */
static void check_close_sent(struct web_connection *connection)
{
    if (connection->state == WEB_CLOSING && connection->queued_bytes == 0)
        loop_timer_arm(connection->timer, connection->close_wait_ms);
}

void web_connection_flush(struct web_connection *connection)
{
    if (connection->state == WEB_GONE)
        return;
    while (!stream_is_full(connection)) {
        if (!send_piece(connection))
            break;
    }
    check_close_sent(connection);
}

bool web_connection_is_full(const struct web_connection *connection)
{
    return connection->state != WEB_GONE &&
           (connection->queued_bytes > 0 || stream_is_full(connection));
}

/* Frames. */

static size_t parts_size(const struct span *parts, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += parts[i].size;
    return size;
}

static void fill_frame(uint8_t *to, const uint8_t *head, size_t head_size,
                       const struct span *parts, size_t count)
{
    memcpy(to, head, head_size);
    to += head_size;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].size > 0)
            memcpy(to, parts[i].data, parts[i].size);
        to += parts[i].size;
    }
}

/* Room for SIZE bytes behind all that waits, in the stream itself when nothing does. */
static uint8_t *reserve_last(struct web_connection *connection, size_t size)
{
    struct web_out *out;
    uint8_t *place;

    if (!web_connection_is_full(connection) && size <= STREAM_HIGH_WATER_BYTES &&
        stream_send_place(connection->stream, size, &place) == 0) {
        connection->shared->counters->sent_bytes += size;
        return place;
    }
    out = malloc(sizeof(*out) + size);
    if (!out)
        return NULL;
    *out = (struct web_out){ .size = size };
    list_append(&connection->queue, &out->node);
    connection->queued_bytes += size;
    return out->data;
}

static void send_frame(struct web_connection *connection, enum websocket_opcode opcode,
                       const struct span *parts, size_t count)
{
    size_t size = parts_size(parts, count);
    uint8_t head[WEBSOCKET_HEAD_MAX_BYTES];
    size_t head_size = websocket_head(opcode, size, NULL, head);
    uint8_t *place = reserve_last(connection, head_size + size);

    if (!place) {
        web_connection_drop(connection, "no memory");
        return;
    }
    fill_frame(place, head, head_size, parts, count);
    web_connection_flush(connection);
    connection->full |= web_connection_is_full(connection);
    backlog_grew(&connection->backlog);
}

void web_connection_send(struct web_connection *connection, enum websocket_opcode opcode,
                         const struct span *parts, size_t count)
{
    if (connection->state == WEB_OPEN)
        send_frame(connection, opcode, parts, count);
}

/* Ahead of all messages that wait; at most 125 bytes. */
void web_connection_control(struct web_connection *connection, enum websocket_opcode opcode,
                            const void *data, size_t size)
{
    uint8_t head[WEBSOCKET_HEAD_MAX_BYTES];
    struct span part = { .data = data, .size = size };
    size_t head_size = websocket_head(opcode, size, NULL, head);
    struct web_out *out = malloc(sizeof(*out) + head_size + size);

    if (!out) {
        web_connection_drop(connection, "no memory");
        return;
    }
    *out = (struct web_out){ .size = head_size + size };
    fill_frame(out->data, head, head_size, &part, 1);
    list_prepend(&connection->queue, &out->node);
    connection->queued_bytes += out->size;
    web_connection_flush(connection);
    backlog_grew(&connection->backlog);
}

/* Ends. */

void web_connection_close(struct web_connection *connection, unsigned code, const char *reason,
                          uint32_t wait_ms)
{
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];
    struct span part = { .data = (const char *)payload };

    if (connection->state != WEB_OPEN)
        return;
    part.size = websocket_close_payload(code, reason, payload);
    web_connection_set_state(connection, WEB_CLOSING);
    connection->close_wait_ms = wait_ms;
    loop_timer_arm(connection->timer, wait_ms > BACKLOG_STALL_MS ? wait_ms : BACKLOG_STALL_MS);
    send_frame(connection, WEBSOCKET_CLOSE, &part, 1);
}

/* The peer waits for no more messages; only the frame that was begun goes before the echo. */
void web_connection_echo_close(struct web_connection *connection, unsigned code)
{
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];
    uint8_t frame[WEBSOCKET_HEAD_MAX_BYTES + WEBSOCKET_CONTROL_MAX_BYTES];
    size_t size = websocket_close_payload(code, "", payload);
    size_t head_size = websocket_head(WEBSOCKET_CLOSE, size, NULL, frame);

    web_connection_forget_queue(connection);
    while (send_piece(connection))
        continue;
    if (connection->current)
        return; /* its end did not fit: then the echo cannot follow */
    memcpy(frame + head_size, payload, size);
    (void)stream_send(connection->stream, frame, head_size + size); /* a lost echo is no news */
}

void web_connection_leave(struct web_connection *connection)
{
    web_connection_set_state(connection, WEB_LEAVING);
    stream_finish(connection->stream, WEB_LINGER_MS);
}

/* HTTP. */

void web_connection_answer(struct web_connection *connection, const struct web_answer *answer)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    if (http_response_append(&text, answer->status, answer->extra, answer->content_type,
                             answer->body) < 0 ||
        stream_send(connection->stream, text.data, text.size) < 0) {
        web_connection_drop(connection, "cannot be answered");
        return;
    }
    connection->shared->counters->sent_bytes += text.size;
    web_connection_set_state(connection, WEB_ANSWERED);
    if (connection->more_may_come)
        loop_timer_arm(connection->timer, WEB_LINGER_MS);
    else
        web_connection_leave(connection);
}

bool web_connection_upgrade(struct web_connection *connection, struct span key,
                            const struct web_role *role, void *ctx)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    char accept[WEBSOCKET_ACCEPT_SIZE + 1];

    if (websocket_key_accept(key, accept) < 0 ||
        buf_printf(&text,
                   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
                   accept) < 0 ||
        stream_send(connection->stream, text.data, text.size) < 0) {
        web_connection_drop(connection, "cannot be answered");
        return false;
    }
    connection->shared->counters->sent_bytes += text.size;
    websocket_init(&connection->ws, WEBSOCKET_SERVER, role->max_message_bytes);
    connection->ws.discards = role->discards;
    connection->role = role;
    connection->role_ctx = ctx;
    web_connection_set_state(connection, WEB_OPEN);
    if (role->pings)
        loop_timer_arm(connection->timer, WEB_PING_INTERVAL_MS);
    else
        loop_timer_disarm(connection->timer);
    return true;
}
