/* web_answer.c - see web_answer.h. Bodies are checked to be JSON, so that a broken adapter
 * cannot break a client's socket, and then go out as the same bytes. */
#include "web_answer.h"

#include <errno.h>

#include "error.h"
#include "log.h"

/* A frame from pieces. */
struct parts {
    struct span items[16];
    size_t count;
    size_t size;
};

static void add(struct parts *parts, struct span part)
{
    parts->items[parts->count++] = part;
    parts->size += part.size;
}

static void add_text(struct parts *parts, const char *text)
{
    add(parts, span_of_text(text));
}

static void add_context(struct parts *parts, const char *key, struct span value)
{
    if (!value.data)
        return;
    add_text(parts, key);
    add(parts, value);
}

/* MEMBER: `,"result":` or `,"error":`. */
static void send_result(struct web_call *call, const char *member, struct span value)
{
    struct parts parts = { 0 };

    add_text(&parts, "{\"type\":\"invocationresult\",\"invocation_id\":");
    add(&parts, call->id);
    add_text(&parts, ",\"function_id\":");
    add(&parts, call->function);
    add_context(&parts, ",\"traceparent\":", call->traceparent);
    add_context(&parts, ",\"baggage\":", call->baggage);
    add_text(&parts, member);
    add(&parts, value);
    add_text(&parts, "}");
    if (parts.size > WEB_LOGGED_RESULT_BYTES)
        log_event(LOG_INFO, "web_large_result", log_text("function", call->name),
                  log_uint("bytes", parts.size));
    web_connection_send(call->owner->connection, WEBSOCKET_TEXT, parts.items, parts.count);
}

void web_answer_plain(struct web_call *call, const char *code, const char *message)
{
    _cleanup_(buf_done)
    struct buf error = { 0 };
    int result = buf_printf(&error, "{\"code\":\"%s\",\"message\":", code);

    if (result == 0)
        result = json_append_string(&error, message, strlen(message));
    if (result == 0)
        result = buf_append_byte(&error, '}');
    if (result == 0)
        send_result(call, ",\"error\":", (struct span){ (const char *)error.data, error.size });
    else
        web_connection_drop(call->owner->connection, "no memory");
}

void web_answer_result(struct web_call *call, struct span body)
{
    struct span value = span_of_text("null");

    if (body.size > 0 && json_scan(body.data, body.size, &value, NULL) < 0) {
        log_event(LOG_WARN, "web_reply_no_json", log_text("function", call->name),
                  log_uint("bytes", body.size));
        web_answer_plain(call, "invocation_failed", "the adapter's reply is no JSON");
        return;
    }
    send_result(call, ",\"result\":", value);
}

/* Errors. */

/* What does not go out beside `message`: a stacktrace would make clients take the error for one
 * of their own, a partial would double the frame. */
static bool is_flat(struct span key)
{
    static const char *const kept_back[] = { "code", "message", "stacktrace", "partial" };

    for (size_t i = 0; i < ARRAY_SIZE(kept_back); i++) {
        if (json_string_equals(key, kept_back[i]))
            return false;
    }
    return true;
}

static int append_member(struct buf *to, struct span key, struct span value)
{
    int result = buf_append_byte(to, ',');

    if (result == 0)
        result = buf_append(to, key.data, key.size);
    if (result == 0)
        result = buf_append_byte(to, ':');
    return result == 0 ? buf_append(to, value.data, value.size) : result;
}

static int append_flat(struct buf *to, struct span object)
{
    struct json_iterator iterator = json_iterate(object);
    struct span key, value;
    int result = 0;

    while (result == 0 && json_next(&iterator, &key, &value)) {
        if (is_flat(key))
            result = append_member(to, key, value);
    }
    return result;
}

int web_error_append(struct buf *to, struct span envelope)
{
    struct span object, code;
    int result;

    if (json_scan(envelope.data, envelope.size, &object, NULL) < 0 ||
        json_kind(object) != JSON_OBJECT)
        return -EBADMSG;
    code = json_get(object, "code");
    if (!code.data || json_kind(code) != JSON_STRING)
        return -EBADMSG;
    result = buf_append_text(to, "{\"code\":");
    if (result == 0)
        result = buf_append(to, code.data, code.size);
    if (result == 0)
        result = buf_append_text(to, ",\"message\":");
    if (result == 0)
        result = json_append_string(to, object.data, object.size);
    if (result == 0)
        result = append_flat(to, object);
    return result == 0 ? buf_append_byte(to, '}') : result;
}

/* What an adapter sent as an error and is none, as a message. */
static void answer_no_envelope(struct web_call *call, struct span body)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    log_event(LOG_WARN, "web_error_no_envelope", log_text("function", call->name),
              log_uint("bytes", body.size));
    if (buf_append(&text, body.data, body.size) < 0 || !buf_text(&text))
        web_connection_drop(call->owner->connection, "no memory");
    else
        web_answer_plain(call, "invocation_failed", buf_text(&text));
}

void web_answer_envelope(struct web_call *call, struct span envelope)
{
    _cleanup_(buf_done)
    struct buf error = { 0 };
    int result = web_error_append(&error, envelope);

    if (result == 0)
        send_result(call, ",\"error\":", (struct span){ (const char *)error.data, error.size });
    else if (result == -EBADMSG)
        answer_no_envelope(call, envelope);
    else
        web_connection_drop(call->owner->connection, "no memory");
}

void web_answer_progress(struct web_call *call, struct span event)
{
    struct span value;
    struct parts parts = { 0 };

    if (json_scan(event.data, event.size, &value, NULL) < 0)
        return; /* nothing that a client could read */
    add_text(&parts, "{\"type\":\"invocationprogress\",\"invocation_id\":");
    add(&parts, call->id);
    add_text(&parts, ",\"event\":");
    add(&parts, value);
    add_text(&parts, "}");
    web_connection_send(call->owner->connection, WEBSOCKET_TEXT, parts.items, parts.count);
}
