/* native_caller.c - a native connection as a caller: its calls and their answers. */
#include <string.h>

#include "error.h"
#include "native_peer_state.h"
#include "refusal.h"
#include "router_limits.h"

#define EVENT_BACKLOG_BYTES (1024u * 1024) /* progress is dropped for a slower reader */

/* The error of an engine, which has no S-code: `{"code", "message"}`. */
void native_caller_send_engine_error(struct native_peer *peer, uint64_t id, const char *code,
                                     const char *message)
{
    _cleanup_(buf_done)
    struct buf body = { 0 };

    if (buf_printf(&body, "{\"code\":\"%s\",\"message\":", code) < 0 ||
        json_append_string(&body, message, strlen(message)) < 0 ||
        buf_append_byte(&body, '}') < 0) {
        link_break(peer->link, "no memory for an answer");
        return;
    }
    native_peer_send_body(peer, ENVELOPE_ERROR, id,
                          (struct span){ .data = (const char *)body.data, .size = body.size });
}

void native_caller_send_answer(struct native_peer *peer, uint64_t id,
                               const struct answer *answer)
{
    static const char *const engine_codes[ANSWER_KIND_MAX] = {
        [ANSWER_NOT_FOUND] = "function_not_found",
        [ANSWER_EXPIRED] = "timeout",
        [ANSWER_FAILED] = "invocation_failed",
    };

    if (engine_codes[answer->kind])
        native_caller_send_engine_error(peer, id, engine_codes[answer->kind], answer->message);
    else if (answer->envelope &&
             envelope_set_id(answer->envelope, answer->envelope_size, id) == 0)
        native_peer_send_whole(peer, answer->envelope, answer->envelope_size);
    else
        native_peer_send_body(peer,
                              answer->kind == ANSWER_REPLY ? ENVELOPE_REPLY : ENVELOPE_ERROR,
                              id, answer->body);
}

/* Calls. */

static void on_answer(void *ctx, uint64_t tag, const struct answer *answer)
{
    struct native_peer *peer = ctx;

    (void)table_remove(peer->calls, tag); /* not there if it was answered at once */
    native_caller_send_answer(peer, tag, answer);
}

static void on_event(void *ctx, uint64_t tag, struct span body)
{
    struct native_peer *peer = ctx;

    if (link_queued_bytes(peer->link) < EVENT_BACKLOG_BYTES)
        native_peer_send_body(peer, ENVELOPE_EVENT, tag, body);
}

const struct caller_events native_caller_events = { .answer = on_answer, .event = on_event };

static void caller_over_limit(struct native_peer *peer, uint64_t id)
{
    struct refusal refusal;

    refuse_limit(&refusal, native_peer_router(peer)->settings->router.docs_base,
                 "calls in flight of one connection", CALLER_CALLS_MAX);
    native_caller_send_answer(peer, id, &refusal.answer);
    refusal_done(&refusal);
}

static void caller_call(struct native_peer *peer, const struct envelope *envelope)
{
    struct call call = {
        .function = envelope->operation,
        .body = envelope->body,
        .deadline_ms = envelope->deadline_ms,
        .traceparent = envelope->traceparent,
        .tag = envelope->id,
        .wants_events = true,
    };
    struct pending *pending;

    if (table_get(peer->calls, envelope->id)) {
        link_break(peer->link, "the id of a call in flight was used again");
        return;
    }
    if (peer->caller.in_flight >= CALLER_CALLS_MAX) {
        caller_over_limit(peer, envelope->id);
        return;
    }
    pending = route_call(native_peer_router(peer), &peer->caller, &call);
    if (pending && table_put(peer->calls, envelope->id, pending) < 0) {
        route_cancel(pending);
        link_break(peer->link, "no memory for a call");
    }
}

/* The call is still answered once, like every other. */
static void caller_cancel(struct native_peer *peer, uint64_t id)
{
    struct pending *pending = table_remove(peer->calls, id);

    if (!pending)
        return; /* its answer is under way */
    route_cancel(pending);
    native_caller_send_engine_error(peer, id, "cancelled",
                                    "the call was cancelled by its caller");
}

/* Back-pressure of a caller. */

static size_t backlog_queued_bytes(void *ctx)
{
    return link_queued_bytes(((struct native_peer *)ctx)->link);
}

static void backlog_pause(void *ctx)
{
    link_pause(((struct native_peer *)ctx)->link);
}

static void backlog_resume(void *ctx)
{
    link_resume(((struct native_peer *)ctx)->link);
}

static void backlog_drop(void *ctx, const char *reason)
{
    link_break(((struct native_peer *)ctx)->link, reason);
}

static const struct backlog_ops peer_backlog_ops = {
    .queued_bytes = backlog_queued_bytes,
    .pause = backlog_pause,
    .resume = backlog_resume,
    .drop = backlog_drop,
};

void native_caller_begin(struct native_peer *peer)
{
    native_peer_set_state(peer, PEER_CALLER);
    backlog_join(&native_peer_router(peer)->backlog, &peer->backlog, &peer_backlog_ops, peer);
}

void native_caller_message(struct native_peer *peer, const struct envelope *envelope)
{
    switch (envelope->kind) {
    case ENVELOPE_CALL:
        caller_call(peer, envelope);
        break;
    case ENVELOPE_CANCEL:
        caller_cancel(peer, envelope->id);
        break;
    case ENVELOPE_OPEN:
    case ENVELOPE_DATA:
    case ENVELOPE_CREDIT:
    case ENVELOPE_CLOSE:
        native_streams_message(&peer->streams, envelope);
        break;
    default:
        link_break(peer->link, "a kind of message that callers do not send");
        break;
    }
}
