/* web_main.c - see web_main.h. One row a frame type. */
#include "web_main.h"

#include <errno.h>
#include <time.h>

#include "log.h"
#include "router.h"
#include "utf8.h"
#include "web_call.h"

void web_clients_init(struct web_clients *clients, struct router *router)
{
    *clients = (struct web_clients){ .router = router };
    list_init(&clients->mains);
}

char *web_text_of(struct span string, size_t max_bytes)
{
    struct buf text = { 0 };

    if (json_string_decode(string, &text) < 0 || !buf_text(&text)) {
        buf_done(&text);
        return NULL;
    }
    text.size = utf8_boundary((const char *)text.data, text.size, max_bytes);
    return (char *)buf_take(&text, NULL);
}

static void log_bad_frame(struct web_main *self, const char *reason)
{
    struct web_clients *clients = self->clients;

    if (log_limit_pass(&clients->bad_frames, loop_now_ms(clients->router->loop)))
        log_event(LOG_WARN, "web_bad_frame", log_text("worker", self->worker_id),
                  log_text("reason", reason));
}

/* The frames. */

static void on_invoke(struct web_main *self, const struct web_frame *frame)
{
    const char *fault = web_call_begin(self, frame);

    if (fault)
        log_bad_frame(self, fault);
}

static size_t registration_find(const struct web_main *self, struct span id)
{
    size_t i = 0;

    while (i < self->registration_count && !json_string_equals(id, self->registrations[i]))
        i++;
    return i;
}

static void on_register(struct web_main *self, const struct web_frame *frame)
{
    struct span id = frame->members[WEB_ID];
    char *text;

    if (self->registration_count == WEB_REGISTRATIONS_MAX ||
        registration_find(self, id) < self->registration_count)
        return;
    text = web_text_of(id, WEB_ID_MAX_BYTES);
    if (text && json_string_equals(id, text))
        self->registrations[self->registration_count++] = take_ptr(text);
    free(text);
}

static void on_unregister(struct web_main *self, const struct web_frame *frame)
{
    size_t found = registration_find(self, frame->members[WEB_ID]);

    if (found == self->registration_count)
        return;
    free(self->registrations[found]);
    self->registrations[found] = self->registrations[--self->registration_count];
}

static void on_ping(struct web_main *self, const struct web_frame *frame)
{
    struct span pong = span_of_text("{\"type\":\"pong\"}");

    web_connection_send(self->connection, WEBSOCKET_TEXT, &pong, 1);
}

static bool is_token_of(const struct web_main *other, const struct web_frame *frame)
{
    char *token = web_text_of(frame->members[WEB_REATTACH_TOKEN], UUID_TEXT_BYTES);
    bool equal = token && span_equals_constant_time(span_of_text(token), other->reattach_token);

    free(token);
    return equal;
}

/* A client that came back after its connection broke, before we noticed: the old one ends. */
static void on_reattach(struct web_main *self, const struct web_frame *frame)
{
    LIST_FOREACH(node, &self->clients->mains)
    {
        struct web_main *other = LIST_ENTRY(node, struct web_main, node);

        if (other == self ||
            !json_string_equals(frame->members[WEB_PREVIOUS_WORKER_ID], other->worker_id))
            continue;
        if (is_token_of(other, frame))
            web_connection_drop(other->connection, "its client has reattached");
        return;
    }
}

static void on_ignored(struct web_main *self, const struct web_frame *frame)
{
}

static const struct {
    const char *type;
    void (*on)(struct web_main *self, const struct web_frame *frame);
} frame_types[] = {
    { "invokefunction", on_invoke },
    { "ping", on_ping },
    { "registerfunction", on_register },
    { "unregisterfunction", on_unregister },
    { "reattach", on_reattach },
    { "invocationresult", on_ignored }, /* the router calls nothing of a client */
    { "registertrigger", on_ignored },
    { "unregistertrigger", on_ignored },
    { "registertriggertype", on_ignored },
    { "unregistertriggertype", on_ignored },
    { "registerservice", on_ignored },
    { "triggerregistrationresult", on_ignored },
};

static void on_message(void *ctx, bool is_text, const uint8_t *data, size_t size)
{
    struct web_main *self = ctx;
    const char *reason = NULL;
    struct web_frame frame;

    switch (web_frame_read(is_text, data, size, &frame, &reason)) {
    case WEB_FRAME_SILENT:
        return;
    case WEB_FRAME_BAD:
        log_bad_frame(self, reason);
        return;
    case WEB_FRAME_JSON:
        break;
    }
    self->speaks = true;
    for (size_t i = 0; i < ARRAY_SIZE(frame_types); i++) {
        if (json_string_equals(frame.members[WEB_TYPE], frame_types[i].type)) {
            frame_types[i].on(self, &frame);
            return;
        }
    }
    log_bad_frame(self, "unknown type");
}

/* Life. */

static void web_main_free(struct web_main *self)
{
    list_remove(&self->node);
    for (int i = 0; i < WEB_IDENTITY_MAX; i++)
        free(self->identity[i]);
    for (size_t i = 0; i < self->registration_count; i++)
        free(self->registrations[i]);
    free(self);
}

static void on_gone(void *ctx, unsigned code)
{
    struct web_main *self = ctx;

    log_event(LOG_DEBUG, "web_client_gone", log_text("worker", self->worker_id),
              log_uint("code", code));
    route_caller_gone(&self->caller);
    web_calls_forget(&self->calls);
    web_main_free(self);
}

static const struct web_role main_role = {
    .name = "main",
    .max_message_bytes = WEB_MAIN_MESSAGE_MAX_BYTES,
    .pings = true,
    .message = on_message,
    .gone = on_gone,
};

static void greet(struct web_main *self)
{
    struct span parts[] = {
        span_of_text("{\"type\":\"workerregistered\",\"worker_id\":\""),
        span_of_text(self->worker_id),
        span_of_text("\",\"reattach_token\":\""),
        span_of_text(self->reattach_token),
        span_of_text("\"}"),
    };

    web_connection_send(self->connection, WEBSOCKET_TEXT, parts, ARRAY_SIZE(parts));
}

static uint64_t unix_time_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int web_main_accept(struct web_clients *clients, struct web_connection *connection,
                    struct span key)
{
    struct web_main *self = calloc(1, sizeof(*self));
    int result = self ? uuid_random(self->worker_id) : -ENOMEM;

    if (result == 0)
        result = uuid_random(self->reattach_token);
    if (result < 0) {
        free(self);
        return result;
    }
    self->clients = clients;
    self->connection = connection;
    self->connected_at_ms = unix_time_ms();
    list_init(&self->node);
    list_init(&self->calls);
    caller_init(&self->caller, &web_call_events, self);
    if (!web_connection_upgrade(connection, key, &main_role, self)) {
        web_main_free(self);
        return 0;
    }
    list_append(&clients->mains, &self->node);
    greet(self);
    return 0;
}
