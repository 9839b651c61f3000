/* client.c - see client.h. */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "error.h"
#include "json_scan.h"

/* Frames from the router. */

static struct client_call *find_call(struct client *client, struct span id)
{
    char text[32];

    LIST_FOREACH(node, &client->calls)
    {
        struct client_call *call = LIST_ENTRY(node, struct client_call, node);

        (void)snprintf(text, sizeof(text), "%" PRIu64, call->id); /* fits */
        if (json_string_equals(id, text))
            return call;
    }
    return NULL;
}

static void lose(struct client *client, const char *why)
{
    if (client->lost)
        return;
    client->lost = true;
    (void)snprintf(client->why_lost, sizeof(client->why_lost), "%s", why);
}

static void take_result(struct client *client, struct client_call *call, struct span result,
                        struct span error)
{
    struct span body = error.data ? error : result;

    if (!body.data)
        body = span_of_text("null");
    if (buf_append(&call->answer, body.data, body.size) < 0) {
        lose(client, "no memory");
        return;
    }
    list_remove(&call->node);
    call->state = CLIENT_CALL_OVER;
    call->is_error = error.data != NULL;
}

static void on_message(void *ctx, bool is_text, const uint8_t *data, size_t size)
{
    enum { TYPE, ID, RESULT, ERROR, EVENT };
    struct json_member members[] = {
        [TYPE] = { .name = "type" },     [ID] = { .name = "invocation_id" },
        [RESULT] = { .name = "result" }, [ERROR] = { .name = "error" },
        [EVENT] = { .name = "event" },
    };
    struct client *client = ctx;
    struct client_call *call;
    struct span frame;

    if (json_scan((const char *)data, size, &frame, NULL) < 0 ||
        json_kind(frame) != JSON_OBJECT)
        return;
    json_find(frame, members, ARRAY_SIZE(members));
    call = find_call(client, members[ID].value);
    if (!call)
        return;
    if (json_string_equals(members[TYPE].value, "invocationresult"))
        take_result(client, call, members[RESULT].value, members[ERROR].value);
    else if (json_string_equals(members[TYPE].value, "invocationprogress") &&
             members[EVENT].value.data && call->progress)
        call->progress(call->progress_ctx, members[EVENT].value);
}

/* The socket. */

static void send_frame(struct client *client, struct client_call *call)
{
    int result = web_socket_send(client->socket, WEBSOCKET_TEXT, call->frame.data,
                                 call->frame.size);

    if (result < 0)
        lose(client, strerror(-result));
    buf_done(&call->frame);
    call->state = CLIENT_CALL_SENT;
}

static void on_opened(void *ctx)
{
    struct client *client = ctx;

    LIST_FOREACH(node, &client->calls)
    {
        send_frame(client, LIST_ENTRY(node, struct client_call, node));
    }
}

static void on_closed(void *ctx, unsigned code, const char *why)
{
    struct client *client = ctx;

    lose(client, *why ? why : "the router closed the connection");
    web_socket_free(take_ptr(client->socket));
}

static const struct web_socket_events socket_events = {
    .opened = on_opened,
    .message = on_message,
    .closed = on_closed,
};

/* Calls. */

static int write_frame(struct client_call *call, const struct client_request *request)
{
    struct buf *to = &call->frame;
    int result = buf_printf(
        to, "{\"type\":\"invokefunction\",\"invocation_id\":\"%" PRIu64 "\",\"function_id\":",
        call->id);

    if (result == 0)
        result = json_append_string(to, request->function, strlen(request->function));
    if (result == 0 && request->name_space) {
        result = buf_append_text(to, ",\"namespace\":");
        if (result == 0)
            result = json_append_string(to, request->name_space, strlen(request->name_space));
    }
    if (result == 0 && call->progress)
        result = buf_append_text(to, ",\"progress\":true");
    if (result == 0)
        result = buf_append_text(to, ",\"data\":");
    if (result == 0)
        result = buf_append(to, request->payload.data, request->payload.size);
    return result == 0 ? buf_append_byte(to, '}') : result;
}

static int connect_first(struct client *client)
{
    struct web_socket_spec spec = {
        .endpoint = &client->endpoint,
        .path = "/",
        .token = client->token,
        .events = &socket_events,
        .ctx = client,
    };

    if (client->socket || client->lost)
        return 0;
    return web_socket_new(client->loop, &spec, &client->socket);
}

int client_call_begin(struct client *client, struct client_call *call,
                      const struct client_request *request)
{
    int result;

    call->id = ++client->next_id;
    result = write_frame(call, request);
    if (result == 0)
        result = connect_first(client);
    if (result < 0)
        return result;
    call->state = CLIENT_CALL_QUEUED;
    list_append(&client->calls, &call->node);
    if (client->socket && web_socket_is_open(client->socket))
        send_frame(client, call);
    return 0;
}

void client_call_done(struct client_call *call)
{
    if (call->state == CLIENT_CALL_QUEUED || call->state == CLIENT_CALL_SENT)
        list_remove(&call->node);
    buf_done(&call->frame);
    buf_done(&call->answer);
    call->state = CLIENT_CALL_NEW;
}

/* Waiting. */

uint64_t client_now_ms(const struct client *client)
{
    return loop_now_ms(client->loop);
}

static int time_left_ms(const struct client *client, uint64_t deadline_ms)
{
    uint64_t now_ms = client_now_ms(client);

    if (deadline_ms == CLIENT_NO_DEADLINE)
        return -1;
    if (deadline_ms <= now_ms)
        return 0;
    return deadline_ms - now_ms > INT32_MAX ? INT32_MAX : (int)(deadline_ms - now_ms);
}

enum client_outcome client_wait_for(struct client *client, bool (*done)(const void *ctx),
                                    const void *ctx, uint64_t deadline_ms, bool ignore_signal)
{
    for (;;) {
        int left_ms = time_left_ms(client, deadline_ms);
        int result;

        if (done(ctx))
            return CLIENT_ANSWERED;
        if (client->interrupt.caught && !ignore_signal)
            return CLIENT_INTERRUPTED;
        if (client->lost)
            return CLIENT_LOST;
        if (left_ms == 0)
            return CLIENT_TIMED_OUT;
        result = loop_turn(client->loop, left_ms);
        if (result < 0)
            lose(client, strerror(-result));
    }
}

static bool is_over(const void *ctx)
{
    const struct client_call *call = ctx;

    return call->state == CLIENT_CALL_OVER;
}

enum client_outcome client_wait(struct client *client, const struct client_call *call,
                                uint64_t deadline_ms, bool ignore_signal)
{
    return client_wait_for(client, is_over, call, deadline_ms, ignore_signal);
}

enum client_outcome client_run(struct client *client, struct client_call *call,
                               const struct client_request *request, uint64_t deadline_ms)
{
    int result = client_call_begin(client, call, request);

    if (result < 0) {
        lose(client, strerror(-result));
        return CLIENT_LOST;
    }
    return client_wait(client, call, deadline_ms, false);
}

void client_reset(struct client *client)
{
    web_socket_free(take_ptr(client->socket));
    client->lost = false;
}

static void say_goodbye(struct client *client, bool ignore_signal)
{
    if (!client->socket)
        return;
    web_socket_close(client->socket, WEBSOCKET_CLOSE_NORMAL, "", WEB_SOCKET_CLOSE_WAIT_MS);
    while (client->socket && (ignore_signal || !client->interrupt.caught)) {
        if (loop_turn(client->loop, -1) < 0)
            return;
    }
}

void client_close(struct client *client)
{
    say_goodbye(client, false);
}

void client_leave(struct client *client)
{
    say_goodbye(client, true);
}

void client_explain(const struct client *client, enum client_outcome outcome,
                    const char *function, uint64_t timeout_ms,
                    char ret_text[CLIENT_TEXT_MAX_BYTES])
{
    const char *host = client->endpoint.host;
    unsigned port = client->endpoint.port;

    if (outcome == CLIENT_LOST)
        (void)snprintf(ret_text, CLIENT_TEXT_MAX_BYTES,
                       "no connection to %s port %u: %s; does the router run there? "
                       "`sandbox-router --config FILE` starts it, and says on its standard "
                       "error (as a service: in the journal) what it does",
                       host, port, client->why_lost);
    else if (outcome == CLIENT_TIMED_OUT)
        (void)snprintf(ret_text, CLIENT_TEXT_MAX_BYTES,
                       "%s: no answer from %s port %u within %" PRIu64
                       " ms; does the router run there?",
                       function, host, port, timeout_ms);
    else
        (void)snprintf(ret_text, CLIENT_TEXT_MAX_BYTES, "%s: interrupted", function);
}

/* Life. */

int client_init(struct client *client, const struct endpoint *endpoint, const char *token)
{
    int result;

    *client = (struct client){ .endpoint = *endpoint, .token = token };
    list_init(&client->calls);
    result = loop_new(&client->loop);
    if (result == 0)
        result = interrupt_init(&client->interrupt, client->loop);
    if (result < 0)
        client_done(client);
    return result;
}

void client_done(struct client *client)
{
    web_socket_free(take_ptr(client->socket));
    interrupt_done(&client->interrupt);
    loop_free(take_ptr(client->loop));
}
