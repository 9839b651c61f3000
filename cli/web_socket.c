/* web_socket.c - see web_socket.h. */
#include "web_socket.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "dial.h"
#include "http.h"

#define WHY_MAX_BYTES 256

enum socket_state {
    SOCKET_DIALING,   /* no TCP yet */
    SOCKET_UPGRADING, /* the request is sent, its answer is collected */
    SOCKET_OPEN,      /* messages both ways */
    SOCKET_CLOSING,   /* our close frame is queued; messages still come */
    SOCKET_LEAVING,   /* the router's close frame is answered; TCP is ending */
    SOCKET_ENDED,     /* `closed` is due or was called */
    SOCKET_STATE_MAX
};

struct web_socket {
    struct loop *loop;
    enum socket_state state;
    const struct web_socket_events *events;
    void *ctx;
    struct dial *dial;
    struct stream *stream;
    struct buf request;
    char key[WEBSOCKET_KEY_SIZE + 1];
    struct http_head head;
    struct websocket ws;
    bool full;
    unsigned code; /* for `closed` */
    char why[WHY_MAX_BYTES];
    struct loop_timer *close_timer;
    struct loop_notice tell; /* deferred: `closed` */
};

static const bool moves[SOCKET_STATE_MAX][SOCKET_STATE_MAX] = {
    [SOCKET_DIALING] = { [SOCKET_UPGRADING] = true, [SOCKET_ENDED] = true },
    [SOCKET_UPGRADING] = { [SOCKET_OPEN] = true, [SOCKET_ENDED] = true },
    [SOCKET_OPEN] = { [SOCKET_CLOSING] = true, [SOCKET_LEAVING] = true, [SOCKET_ENDED] = true },
    [SOCKET_CLOSING] = { [SOCKET_ENDED] = true },
    [SOCKET_LEAVING] = { [SOCKET_ENDED] = true },
};

static void set_state(struct web_socket *socket, enum socket_state state)
{
    bool allowed = moves[socket->state][state];

    assert(allowed);
    (void)allowed; /* with NDEBUG */
    socket->state = state;
}

static void set_reason(struct web_socket *socket, unsigned code, const char *why)
{
    socket->code = code;
    (void)snprintf(socket->why, sizeof(socket->why), "%s", why); /* cut is fine */
}

/* The first reason counts. */
static void end(struct web_socket *socket, unsigned code, const char *why)
{
    if (socket->state == SOCKET_ENDED)
        return;
    if (socket->state != SOCKET_LEAVING)
        set_reason(socket, code, why);
    set_state(socket, SOCKET_ENDED);
    loop_defer(socket->loop, &socket->tell);
}

static void on_tell(void *ctx)
{
    struct web_socket *socket = ctx;

    loop_timer_disarm(socket->close_timer);
    stream_free(take_ptr(socket->stream));
    dial_free(take_ptr(socket->dial));
    socket->events->closed(socket->ctx, socket->code, socket->why); /* may free */
}

/* Frames. */

static void on_ping(struct web_socket *socket, const struct websocket_event *event)
{
    struct buf frame = { 0 };

    if (websocket_frame_append(&frame, WEBSOCKET_CLIENT, WEBSOCKET_PONG, event->data,
                               event->size) == 0)
        (void)stream_send(socket->stream, frame.data, frame.size); /* its end will be told */
    buf_done(&frame);
}

/* Answers the router's close frame, then TCP ends. */
static void echo_close(struct web_socket *socket, unsigned code)
{
    struct buf frame = { 0 };
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];
    size_t size = websocket_close_payload(code, "", payload);

    set_state(socket, SOCKET_LEAVING);
    if (websocket_frame_append(&frame, WEBSOCKET_CLIENT, WEBSOCKET_CLOSE, payload, size) == 0)
        (void)stream_send(socket->stream, frame.data, frame.size); /* a lost echo is no news */
    buf_done(&frame);
    stream_finish(socket->stream, WEB_SOCKET_CLOSE_WAIT_MS);
}

static void on_close(struct web_socket *socket, const struct websocket_event *event)
{
    char why[WEBSOCKET_REASON_MAX_BYTES + 1];

    (void)snprintf(why, sizeof(why), "%.*s", (int)event->size, (const char *)event->data);
    if (socket->state == SOCKET_CLOSING) {
        end(socket, event->code, why);
        return;
    }
    set_reason(socket, event->code, why);
    echo_close(socket, event->code);
}

static void handle(struct web_socket *socket, const struct websocket_event *event)
{
    switch (event->kind) {
    case WEBSOCKET_EVENT_MESSAGE:
        socket->events->message(socket->ctx, event->is_text, event->data, event->size);
        break;
    case WEBSOCKET_EVENT_PING:
        on_ping(socket, event);
        break;
    case WEBSOCKET_EVENT_CLOSE:
        on_close(socket, event);
        break;
    case WEBSOCKET_EVENT_FAILED:
        end(socket, WEB_SOCKET_LOST, event->reason);
        break;
    case WEBSOCKET_EVENT_PONG:
    case WEBSOCKET_EVENT_NONE:
        break;
    }
}

static void take_frames(struct web_socket *socket, const uint8_t *data, size_t size)
{
    struct websocket_event event = { .kind = WEBSOCKET_EVENT_PONG };

    while (socket->state == SOCKET_OPEN || socket->state == SOCKET_CLOSING) {
        if (websocket_next(&socket->ws, &data, &size, &event) < 0) {
            end(socket, WEB_SOCKET_LOST, "no memory");
            return;
        }
        if (event.kind == WEBSOCKET_EVENT_NONE)
            return;
        handle(socket, &event);
    }
}

/* The upgrade. */

/* The router's own word for a refusal is the body behind the head. */
static void refuse(struct web_socket *socket, const struct http_response *response,
                   struct span body)
{
    char why[WHY_MAX_BYTES];

    while (body.size > 0 && body.data[body.size - 1] == '\n')
        body.size--;
    (void)snprintf(why, sizeof(why), "HTTP %u %.*s%s%.*s", response->status,
                   (int)response->reason.size, response->reason.data, body.size > 0 ? ": " : "",
                   (int)(body.size < 128 ? body.size : 128), body.data);
    end(socket, WEB_SOCKET_LOST, why);
}

static bool is_accepted(const struct web_socket *socket, const struct http_response *response)
{
    char wanted[WEBSOCKET_ACCEPT_SIZE + 1];
    struct span accept;

    return websocket_key_accept(span_of_text(socket->key), wanted) == 0 &&
           http_header_get(response->headers, "Sec-WebSocket-Accept", &accept) == 1 &&
           span_equals(accept, wanted) &&
           http_header_has_token(response->headers, "Upgrade", "websocket") &&
           http_header_has_token(response->headers, "Connection", "upgrade") &&
           http_header_get(response->headers, "Sec-WebSocket-Extensions", NULL) == 0;
}

static void take_answer(struct web_socket *socket, const uint8_t *data, size_t size)
{
    struct span head = { (const char *)socket->head.bytes.data, socket->head.bytes.size };
    struct http_response response;

    if (socket->head.state != HTTP_HEAD_COMPLETE || http_response_parse(head, &response) < 0) {
        end(socket, WEB_SOCKET_LOST, "what answers there speaks no HTTP");
    } else if (response.status != 101) {
        refuse(socket, &response, (struct span){ (const char *)data, size });
    } else if (!is_accepted(socket, &response)) {
        end(socket, WEB_SOCKET_LOST, "what answers there speaks no WebSocket");
    } else {
        set_state(socket, SOCKET_OPEN);
        if (socket->events->opened)
            socket->events->opened(socket->ctx);
        take_frames(socket, data, size);
    }
}

static void on_data(void *ctx, uint8_t *data, size_t size)
{
    struct web_socket *socket = ctx;
    size_t used = 0;

    if (socket->state != SOCKET_UPGRADING) {
        take_frames(socket, data, size);
        return;
    }
    if (http_head_feed(&socket->head, data, size, &used) < 0)
        end(socket, WEB_SOCKET_LOST, "no memory");
    else if (socket->head.state != HTTP_HEAD_OPEN)
        take_answer(socket, data + used, size - used);
}

static void on_drained(void *ctx)
{
    struct web_socket *socket = ctx;

    if (!socket->full)
        return;
    socket->full = false;
    if (socket->state == SOCKET_OPEN && socket->events->drained)
        socket->events->drained(socket->ctx);
}

static void on_closed(void *ctx, int error)
{
    struct web_socket *socket = ctx;

    end(socket, WEB_SOCKET_LOST, error < 0 ? strerror(-error) : "the connection was closed");
}

static const struct stream_events stream_events = {
    .data = on_data,
    .drained = on_drained,
    .closed = on_closed,
};

static void on_dialed(void *ctx, struct stream *own_stream, const char *why)
{
    struct web_socket *socket = ctx;

    if (!own_stream) {
        end(socket, WEB_SOCKET_LOST, why);
        return;
    }
    socket->stream = own_stream;
    set_state(socket, SOCKET_UPGRADING);
    stream_start(socket->stream, &stream_events, socket);
    if (stream_send(socket->stream, socket->request.data, socket->request.size) < 0)
        end(socket, WEB_SOCKET_LOST, "no memory");
}

static void on_close_timer(void *ctx)
{
    end(ctx, WEB_SOCKET_LOST, "the close frame was not answered");
}

/* Life. */

static int write_request(struct web_socket *socket, const struct web_socket_spec *spec)
{
    const char *host = spec->endpoint->host;
    bool bare_v6 = strchr(host, ':') && host[0] != '[';
    int result = websocket_key_new(socket->key);

    if (result == 0)
        result = buf_printf(&socket->request,
                            "GET %s HTTP/1.1\r\nHost: %s%s%s:%u\r\nUpgrade: websocket\r\n"
                            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Key: %s\r\n",
                            spec->path, bare_v6 ? "[" : "", host, bare_v6 ? "]" : "",
                            spec->endpoint->port, socket->key);
    if (result == 0 && spec->token)
        result = buf_printf(&socket->request, "Authorization: Bearer %s\r\n", spec->token);
    return result == 0 ? buf_append_text(&socket->request, "\r\n") : result;
}

int web_socket_new(struct loop *loop, const struct web_socket_spec *spec,
                   struct web_socket **ret_socket)
{
    _cleanup_(web_socket_freep)
    struct web_socket *socket = calloc(1, sizeof(*socket));
    int result;

    if (!socket)
        return -ENOMEM;
    socket->loop = loop;
    socket->events = spec->events;
    socket->ctx = spec->ctx;
    loop_notice_init(&socket->tell, on_tell, socket);
    websocket_init(&socket->ws, WEBSOCKET_CLIENT, WEB_SOCKET_MESSAGE_MAX_BYTES);
    result = loop_timer_new(loop, on_close_timer, socket, &socket->close_timer);
    if (result == 0)
        result = write_request(socket, spec);
    if (result == 0)
        result = dial_new(loop, spec->endpoint->host, spec->endpoint->port, on_dialed, socket,
                          &socket->dial);
    if (result < 0)
        return result;
    *ret_socket = take_ptr(socket);
    return 0;
}

int web_socket_send(struct web_socket *socket, enum websocket_opcode opcode, const void *data,
                    size_t size)
{
    struct buf frame = { 0 };
    int result = socket->state == SOCKET_OPEN ? 0 : -EPIPE;

    if (result == 0)
        result = websocket_frame_append(&frame, WEBSOCKET_CLIENT, opcode, data, size);
    if (result == 0)
        result = stream_send(socket->stream, frame.data, frame.size);
    buf_done(&frame);
    if (result == 0 && web_socket_is_full(socket))
        socket->full = true;
    return result;
}

void web_socket_pause(struct web_socket *socket)
{
    if (socket->stream)
        stream_pause(socket->stream);
}

void web_socket_resume(struct web_socket *socket)
{
    if (socket->stream)
        stream_resume(socket->stream);
}

bool web_socket_is_open(const struct web_socket *socket)
{
    return socket->state == SOCKET_OPEN;
}

bool web_socket_is_full(const struct web_socket *socket)
{
    return socket->stream && stream_queued_bytes(socket->stream) > STREAM_HIGH_WATER_BYTES;
}

void web_socket_close(struct web_socket *socket, unsigned code, const char *reason,
                      uint32_t wait_ms)
{
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];
    size_t size = websocket_close_payload(code, reason, payload);
    int result;

    if (socket->state == SOCKET_CLOSING || socket->state == SOCKET_LEAVING)
        return;
    if (socket->state != SOCKET_OPEN) {
        end(socket, WEB_SOCKET_LOST, "closed before it was open");
        return;
    }
    result = web_socket_send(socket, WEBSOCKET_CLOSE, payload, size);
    if (result < 0) {
        end(socket, WEB_SOCKET_LOST, strerror(-result));
        return;
    }
    set_state(socket, SOCKET_CLOSING);
    if (wait_ms > 0)
        loop_timer_arm(socket->close_timer, wait_ms);
}

void web_socket_free(struct web_socket *socket)
{
    if (!socket)
        return;
    loop_notice_cancel(socket->loop, &socket->tell);
    loop_timer_free(socket->close_timer);
    dial_free(socket->dial);
    stream_free(socket->stream);
    buf_done(&socket->request);
    http_head_done(&socket->head);
    websocket_done(&socket->ws);
    free(socket);
}
