/* web_call.c - see web_call.h. The frame is judged, the call is made, the answer comes. What
 * answers look like is web_answer.c's. */
#include "web_call.h"

#include <errno.h>
#include <stdio.h>

#include "log.h"
#include "router.h"
#include "utf8.h"
#include "web_answer.h"
#include "web_engine.h"

/* Life. */

static struct span copy_span(char **at, struct span from)
{
    struct span copy = { .size = from.size };

    if (!from.data)
        return copy;
    copy.data = *at;
    memcpy(*at, from.data, from.size);
    *at += from.size;
    return copy;
}

/* What is echoed only when it is a text of decent length. */
static struct span context_of(const struct web_frame *frame, enum web_member member)
{
    struct span value = frame->members[member];

    if (value.data && json_kind(value) == JSON_STRING &&
        value.size <= WEB_CONTEXT_MAX_BYTES + 2)
        return value;
    return (struct span){ 0 };
}

static struct span string_member(const struct web_frame *frame, enum web_member member)
{
    struct span value = frame->members[member];

    if (value.data && json_kind(value) == JSON_STRING)
        return value;
    return span_of_text("\"\"");
}

static struct web_call *call_new(struct web_main *owner, const struct web_frame *frame,
                                 const char *name)
{
    struct span id = frame->members[WEB_INVOCATION_ID];
    struct span function = string_member(frame, WEB_FUNCTION_ID);
    struct span traceparent = context_of(frame, WEB_TRACEPARENT);
    struct span baggage = context_of(frame, WEB_BAGGAGE);
    struct span decoded = { .data = name, .size = strlen(name) + 1 };
    struct web_call *call = malloc(sizeof(*call) + id.size + function.size + traceparent.size +
                                   baggage.size + decoded.size);
    char *at = call ? call->text : NULL;

    if (!call)
        return NULL;
    *call = (struct web_call){ .owner = owner };
    call->id = copy_span(&at, id);
    call->function = copy_span(&at, function);
    call->traceparent = copy_span(&at, traceparent);
    call->baggage = copy_span(&at, baggage);
    call->name = copy_span(&at, decoded).data;
    call->wants_progress = span_equals(frame->members[WEB_PROGRESS], "true");
    list_append(&owner->calls, &call->node);
    return call;
}

static void call_free(struct web_call *call)
{
    list_remove(&call->node);
    free(call);
}

void web_calls_forget(struct list *calls)
{
    struct list *node;

    while ((node = list_pop(calls)))
        call_free(LIST_ENTRY(node, struct web_call, node));
}

/* The frame. */

static bool is_text(struct span value)
{
    return value.data && json_kind(value) == JSON_STRING;
}

static bool fits(struct span string, size_t max_bytes)
{
    _cleanup_(buf_done)
    struct buf text = { .limit = max_bytes };

    return json_string_decode(string, &text) == 0;
}

static bool is_blank(struct span string)
{
    for (size_t i = 1; i + 1 < string.size; i++) {
        if (string.data[i] != ' ')
            return false;
    }
    return true;
}

/* Why the call cannot be made; code NULL: it can. */
struct objection {
    const char *code;
    char message[WEB_ID_MAX_BYTES + 64];
};

static void object_to(struct objection *objection, const char *code, const char *format, ...)
    _printf_(3, 4);
static void object_to(struct objection *objection, const char *code, const char *format, ...)
{
    va_list arguments;
    size_t size;

    if (objection->code)
        return;
    objection->code = code;
    va_start(arguments, format);
    (void)vsnprintf(objection->message, sizeof(objection->message), format, arguments);
    va_end(arguments);
    size = strlen(objection->message);
    objection->message[utf8_complete_size(objection->message, size)] = '\0';
}

static void judge_function(const struct web_frame *frame, const char *name,
                           struct objection *objection)
{
    struct span function = frame->members[WEB_FUNCTION_ID];

    if (!is_text(function) || !*name)
        object_to(objection, "invocation_failed", "function_id must be the name of a function");
    else if (!fits(function, WEB_ID_MAX_BYTES))
        object_to(objection, "function_not_found", "function not found: %s… (over %u bytes)",
                  name, WEB_ID_MAX_BYTES);
}

static void judge_namespace(const struct web_frame *frame, const char *name,
                            struct objection *objection)
{
    struct span space = frame->members[WEB_NAMESPACE];

    if (!space.data || json_string_equals(space, "default"))
        return;
    if (!is_text(space) || is_blank(space))
        object_to(objection, "INVALID_NAMESPACE", "namespace must not be blank");
    else
        object_to(objection, "function_not_found",
                  "function not found: %s (only the namespace default is served)", name);
}

/* True: a call to be made; *ret_void: and nobody is told of its end. */
static void judge_action(const struct web_frame *frame, struct objection *objection,
                         bool *ret_void)
{
    struct span action = frame->members[WEB_ACTION];
    struct span type = { 0 };

    *ret_void = false;
    if (!action.data)
        return;
    if (json_kind(action) == JSON_OBJECT)
        type = json_get(action, "type");
    if (json_string_equals(type, "void"))
        *ret_void = true;
    else if (json_string_equals(type, "enqueue"))
        object_to(objection, "enqueue_error", "there is no queue here: call the function");
    else
        object_to(objection, "invocation_failed",
                  "action must be absent, or an object whose type is void or enqueue");
}

/* The call. */

static void refuse(struct web_call *call, struct sandbox_error *err)
{
    _cleanup_(buf_done)
    struct buf body = { 0 };
    const char *docs_base = call->owner->clients->router->settings->router.docs_base;

    if (sandbox_error_encode(err, docs_base, &body) == 0)
        web_answer_envelope(call, (struct span){ (const char *)body.data, body.size });
    else
        web_connection_drop(call->owner->connection, "no memory");
    sandbox_error_done(err);
}

/* What the front refuses itself, before the call is forwarded. */
static bool is_over_limits(struct web_call *call, struct span data)
{
    size_t max_bytes = route_max_body_bytes(call->owner->clients->router);
    struct sandbox_error err = { 0 };

    if (call->owner->caller.in_flight >= CALLER_CALLS_MAX)
        (void)sandbox_error_set(&err, S400, "calls in flight on this connection: limit %u",
                                CALLER_CALLS_MAX);
    else if (data.size > max_bytes)
        (void)sandbox_error_set(&err, S001,
                                "data of %zu bytes is over the limit of %zu bytes: send the "
                                "content through a channel (engine::channels::create)",
                                data.size, max_bytes);
    else
        return false;
    refuse(call, &err);
    return true;
}

static void forward(struct web_main *owner, struct web_call *call, const char *name,
                    const struct web_frame *frame)
{
    _cleanup_(buf_done)
    struct buf traceparent = { 0 };
    struct span raw = context_of(frame, WEB_TRACEPARENT);
    struct call forwarded = {
        .function = span_of_text(name),
        .body = frame->members[WEB_DATA],
        .deadline_ms = ENVELOPE_NO_DEADLINE,
        .tag = (uint64_t)(uintptr_t)call,
        .wants_events = call && call->wants_progress,
        .detached = !call,
    };

    if (raw.data && json_string_decode(raw, &traceparent) == 0)
        forwarded.traceparent = (struct span){ (const char *)traceparent.data,
                                               traceparent.size };
    (void)route_call(owner->clients->router, &owner->caller, &forwarded); /* all end together */
}

/* CALL is NULL when nobody waits. */
static void make(struct web_main *owner, struct web_call *call, const char *name,
                 const struct web_frame *frame)
{
    _cleanup_(buf_done)
    struct buf result = { 0 };

    switch (web_engine_serve(owner, name, frame->members[WEB_DATA], &result)) {
    case WEB_ENGINE_DONE:
        if (call)
            web_answer_result(call, (struct span){ (const char *)result.data, result.size });
        break;
    case WEB_ENGINE_REFUSED:
        if (call)
            web_answer_plain(call, "function_not_found", buf_text(&result));
        break;
    case WEB_ENGINE_NO_MEMORY:
        web_connection_drop(owner->connection, "no memory");
        break;
    case WEB_ENGINE_NOT_MINE:
        if (call && is_over_limits(call, frame->members[WEB_DATA]))
            break;
        forward(owner, call, name, frame);
        return; /* the answer frees the call */
    }
    if (call)
        call_free(call);
}

const char *web_call_begin(struct web_main *owner, const struct web_frame *frame)
{
    struct span id = frame->members[WEB_INVOCATION_ID];
    _cleanup_free_ char *name = web_text_of(frame->members[WEB_FUNCTION_ID], WEB_ID_MAX_BYTES);
    struct objection objection = { 0 };
    struct web_call *call = NULL;
    bool is_void;

    if (id.data && !is_text(id))
        return "invocation_id is no text";
    if (id.data && !fits(id, WEB_ID_MAX_BYTES))
        object_to(&objection, "invocation_failed",
                  "invocation_id is no text of at most %u bytes", WEB_ID_MAX_BYTES);
    judge_function(frame, name ? name : "", &objection);
    judge_namespace(frame, name ? name : "", &objection);
    judge_action(frame, &objection, &is_void);
    if (id.data && !is_void) {
        call = call_new(owner, frame, name ? name : "");
        if (!call)
            return "no memory";
    }
    if (!objection.code) {
        make(owner, call, name, frame);
    } else if (call) {
        web_answer_plain(call, objection.code, objection.message);
        call_free(call);
    }
    return NULL;
}

/* The answer. */

static void on_answer(void *ctx, uint64_t tag, const struct answer *answer)
{
    struct web_call *call = (struct web_call *)(uintptr_t)tag;

    switch (answer->kind) {
    case ANSWER_REPLY:
        web_answer_result(call, answer->body);
        break;
    case ANSWER_ERROR:
        web_answer_envelope(call, answer->body);
        break;
    case ANSWER_NOT_FOUND:
        web_answer_plain(call, "function_not_found", answer->message);
        break;
    default:
        web_answer_plain(call, "invocation_failed", answer->message);
        break;
    }
    call_free(call);
}

static void on_event(void *ctx, uint64_t tag, struct span body)
{
    web_answer_progress((struct web_call *)(uintptr_t)tag, body);
}

const struct caller_events web_call_events = { .answer = on_answer, .event = on_event };
