/* front_web.c - see front_web.h. */
#include "front_web.h"

#include <errno.h>
#include <stdio.h>

#include "log.h"
#include "web_channel.h"
#include "web_listen.h"
#include "web_main.h"
#include "web_request.h"

struct front_web {
    struct router *router;
    struct web_listeners listeners;
    struct web_connection_shared shared;
    struct web_clients clients;
    struct list connections;
    unsigned count;    /* connections */
    unsigned greeting; /* of these, waiting for their request */
    char *token;       /* NULL: none is wanted */
    bool loopback_only;
    struct loop_timer *stop_timer;
    struct loop_notice all_gone;
    void (*stopped)(void *ctx); /* not NULL: front_web_stop() was called */
    void *stopped_ctx;
};

/* Answers without a WebSocket. */

static void answer_text(struct web_connection *connection, unsigned status, const char *extra,
                        const char *text)
{
    struct web_answer answer = {
        .status = status,
        .extra = extra,
        .content_type = "text/plain; charset=utf-8",
        .body = span_of_text(text),
    };

    web_connection_answer(connection, &answer);
}

static void answer_health(struct front_web *front, struct web_connection *connection)
{
    char body[64];
    struct web_answer answer = {
        .status = 200,
        .extra = "",
        .content_type = "application/json",
    };

    (void)snprintf(body, sizeof(body), "{\"status\":\"ok\",\"adapter\":\"%s\"}",
                   route_status(front->router)); /* fits: one of four words */
    answer.body = span_of_text(body);
    web_connection_answer(connection, &answer);
}

static void answer_metrics(struct front_web *front, struct web_connection *connection)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct web_answer answer = {
        .status = 200,
        .extra = "",
        .content_type = "text/plain; version=0.0.4; charset=utf-8",
    };

    if (metrics_write(front->router, &text) < 0) {
        web_connection_drop(connection, "no memory");
        return;
    }
    answer.body = (struct span){ .data = (const char *)text.data, .size = text.size };
    web_connection_answer(connection, &answer);
}

/* Telemetry is taken, so that SDKs are content, and thrown away. */
static const struct web_role otel_role = {
    .name = "otel",
    .max_message_bytes = SIZE_MAX / 2,
    .discards = true,
    .pings = true,
};

static void serve_channel(struct front_web *front, struct web_connection *connection,
                          const struct web_request *request)
{
    int result = web_channel_accept(front->router->channels, connection, request);

    if (result == -ENOENT)
        answer_text(connection, 404, "", "Channel not found");
    else if (result < 0)
        web_connection_drop(connection, "no memory");
}

static void serve(struct front_web *front, struct web_connection *connection,
                  const struct web_request *request)
{
    switch (request->target) {
    case WEB_TARGET_MAIN:
        if (web_main_accept(&front->clients, connection, request->key) < 0)
            web_connection_drop(connection, "no memory");
        break;
    case WEB_TARGET_OTEL:
        (void)web_connection_upgrade(connection, request->key, &otel_role, NULL);
        break;
    case WEB_TARGET_CHANNEL:
        serve_channel(front, connection, request);
        break;
    case WEB_TARGET_METRICS:
        answer_metrics(front, connection);
        break;
    case WEB_TARGET_HEALTH:
        answer_health(front, connection);
        break;
    case WEB_TARGET_NONE:
        break;
    }
}

static void on_request(void *ctx, struct web_connection *connection,
                       const struct http_head *head)
{
    struct front_web *front = ctx;
    struct web_policy policy = {
        .allowed_origins = &front->router->settings->router.allowed_origins,
        .token = front->token,
    };
    struct web_request request;

    if (web_request_judge(head, &policy, &request) < 0) {
        web_connection_drop(connection, "no memory");
        return;
    }
    if (request.status == 0)
        serve(front, connection, &request);
    else
        answer_text(connection, request.status, request.extra, request.why);
    web_request_done(&request);
}

/* Connections. */

static void on_greeted(void *ctx, struct web_connection *connection)
{
    struct front_web *front = ctx;

    front->greeting--;
}

static void check_stopped(struct front_web *front)
{
    if (front->stopped && front->count == 0)
        loop_defer(front->router->loop, &front->all_gone);
}

static void on_freed(void *ctx, struct web_connection *connection)
{
    struct front_web *front = ctx;

    front->count--;
    front->shared.counters->connections--;
    check_stopped(front);
}

static const struct web_connection_events connection_events = {
    .request = on_request,
    .greeted = on_greeted,
    .freed = on_freed,
};

/* Too many: the client may read its 503, unless even of these there are too many. */
static bool must_refuse(const struct front_web *front)
{
    return front->count >= WEB_CONNECTIONS_MAX || front->greeting >= WEB_GREETING_MAX;
}

static void on_accepted(void *ctx, struct stream *own_stream)
{
    struct front_web *front = ctx;
    bool refused = must_refuse(front);
    struct web_connection *connection;

    if (refused)
        front->shared.counters->dropped++;
    if (front->count >= WEB_CONNECTIONS_MAX + WEB_REFUSED_MAX) {
        stream_free(own_stream);
        return;
    }
    if (web_connection_new(&front->shared, own_stream, &connection) < 0) {
        log_event(LOG_ERROR, "web_accept_failed", log_text("reason", "no memory"));
        return;
    }
    front->count++;
    front->greeting++;
    front->shared.counters->connections++;
    front->shared.counters->connections_made++;
    list_append(&front->connections, web_connection_node(connection));
    if (refused)
        answer_text(connection, 503, "", "too many connections\n");
}

/* Life. */

static void on_all_gone(void *ctx)
{
    struct front_web *front = ctx;

    loop_timer_disarm(front->stop_timer);
    front->stopped(front->stopped_ctx); /* may free the front: nothing follows */
}

/* Who has not left by now took too long. */
static void on_stop_timer(void *ctx)
{
    struct front_web *front = ctx;

    LIST_FOREACH(node, &front->connections)
    {
        web_connection_drop(web_connection_of(node), "the router stops");
    }
}

void front_web_stop_listening(struct front_web *front)
{
    web_listeners_close(&front->listeners);
}

void front_web_stop(struct front_web *front, void (*stopped)(void *ctx), void *ctx)
{
    front->stopped = stopped;
    front->stopped_ctx = ctx;
    front_web_stop_listening(front);
    LIST_FOREACH(node, &front->connections)
    {
        struct web_connection *connection = web_connection_of(node);

        if (web_connection_state(connection) == WEB_REQUEST)
            web_connection_drop(connection, "the router stops");
        else
            web_connection_close(connection, WEBSOCKET_CLOSE_GOING_AWAY, "the router stops",
                                 WEB_CLOSE_WAIT_MS);
    }
    loop_timer_arm(front->stop_timer, WEB_STOP_MAX_MS);
    check_stopped(front);
}

static int read_token(const struct front_web *front, char **ret_token,
                      char ret_error[FRONT_WEB_ERROR_MAX])
{
    const char *path = front->router->settings->router.auth_token_file;

    *ret_token = NULL;
    return path ? web_token_read(path, ret_token, ret_error) : 0;
}

static void forget_token(struct front_web *front)
{
    if (front->token)
        explicit_bzero(front->token, strlen(front->token));
    free(take_ptr(front->token));
}

void front_web_reload(struct front_web *front)
{
    char error[FRONT_WEB_ERROR_MAX];
    char *token;

    if (read_token(front, &token, error) < 0) {
        log_event(LOG_ERROR, "web_token_kept", log_text("reason", error));
        return;
    }
    if (!token && front->token && !front->loopback_only) {
        log_event(
            LOG_ERROR, "web_token_kept",
            log_text("reason", "listening beyond loopback needs sandbox.auth_token_file"));
        return;
    }
    forget_token(front);
    front->token = token;
}

static int front_open(struct front_web *front, char ret_error[FRONT_WEB_ERROR_MAX])
{
    const struct text_list *addresses = &front->router->settings->router.listen;
    struct web_listen_spec spec = {
        .loop = front->router->loop,
        .addresses = addresses,
        .accepted = on_accepted,
        .ctx = front,
    };

    if (loop_timer_new(front->router->loop, on_stop_timer, front, &front->stop_timer) < 0) {
        (void)snprintf(ret_error, FRONT_WEB_ERROR_MAX, "no memory");
        return -1;
    }
    if (read_token(front, &front->token, ret_error) < 0)
        return -1;
    front->loopback_only = true;
    for (size_t i = 0; i < addresses->count; i++)
        front->loopback_only &= web_address_is_loopback(addresses->items[i]);
    spec.has_token = front->token != NULL;
    return web_listeners_open(&front->listeners, &spec, ret_error);
}

int front_web_new(struct router *router, struct front_web **ret_front,
                  char ret_error[FRONT_WEB_ERROR_MAX])
{
    struct front_web *front = calloc(1, sizeof(*front));

    if (!front) {
        (void)snprintf(ret_error, FRONT_WEB_ERROR_MAX, "no memory");
        return -1;
    }
    front->router = router;
    front->shared = (struct web_connection_shared){
        .loop = router->loop,
        .backlog = &router->backlog,
        .counters = &router->metrics.fronts[METRICS_FRONT_WEB],
        .events = &connection_events,
        .ctx = front,
    };
    list_init(&front->connections);
    web_clients_init(&front->clients, router);
    loop_notice_init(&front->all_gone, on_all_gone, front);
    if (front_open(front, ret_error) < 0) {
        front_web_free(front);
        return -1;
    }
    *ret_front = front;
    return 0;
}

void front_web_free(struct front_web *front)
{
    if (!front)
        return;
    web_listeners_close(&front->listeners);
    LIST_FOREACH(node, &front->connections)
    {
        web_connection_free(web_connection_of(node));
        front->shared.counters->connections--;
    }
    loop_notice_cancel(front->router->loop, &front->all_gone);
    loop_timer_free(front->stop_timer);
    forget_token(front);
    free(front);
}

size_t front_web_connections(const struct front_web *front)
{
    return front->count;
}

uint16_t front_web_port(const struct front_web *front, size_t index)
{
    return index < front->listeners.count ? stream_listener_port(front->listeners.items[index])
                                          : 0;
}
