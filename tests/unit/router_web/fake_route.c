/* fake_route.c - see fake_route.h. */
#include "fake_route.h"

#include <check.h>
#include <stdio.h>

#include "metrics.h"

struct fake_route fake_route;

void fake_route_reset(void)
{
    fake_route = (struct fake_route){ .max_body_bytes = 16 * 1024 * 1024 };
}

void caller_init(struct caller *caller, const struct caller_events *events, void *ctx)
{
    *caller = (struct caller){ .events = events, .ctx = ctx };
    list_init(&caller->calls);
}

static void copy(char *to, size_t room, struct span from)
{
    (void)snprintf(to, room, "%.*s", (int)from.size, from.data ? from.data : "");
}

static void answer(struct fake_call *call, const struct answer *given)
{
    struct caller *caller = call->caller;

    ck_assert_ptr_nonnull(caller);
    call->caller = NULL;
    caller->in_flight--;
    caller->events->answer(caller->ctx, call->tag, given);
}

struct pending *route_call(struct router *router, struct caller *caller,
                           const struct call *call)
{
    struct fake_call *record = &fake_route.calls[fake_route.count];
    struct answer not_found = { .kind = ANSWER_NOT_FOUND, .message = "function not found: no" };

    ck_assert_uint_lt(fake_route.count, FAKE_CALLS_MAX);
    fake_route.count++;
    *record = (struct fake_call){
        .caller = call->detached ? NULL : caller,
        .tag = call->tag,
        .body_size = call->body.size,
        .wants_events = call->wants_events,
        .detached = call->detached,
    };
    copy(record->function, sizeof(record->function), call->function);
    copy(record->body, sizeof(record->body), call->body);
    copy(record->traceparent, sizeof(record->traceparent), call->traceparent);
    if (call->detached)
        return NULL;
    caller->in_flight++;
    if (span_equals(call->function, "no"))
        answer(record, &not_found);
    return NULL;
}

void route_cancel(struct pending *pending)
{
    ck_abort_msg("the web front cancels by the end of its caller");
}

void route_caller_gone(struct caller *caller)
{
    fake_route.gone++;
    for (size_t i = 0; i < fake_route.count; i++) {
        if (fake_route.calls[i].caller != caller)
            continue;
        fake_route.calls[i].caller = NULL;
        fake_route.cancelled++;
        caller->in_flight--;
    }
}

size_t route_max_body_bytes(const struct router *router)
{
    return fake_route.max_body_bytes;
}

const char *route_status(const struct router *router)
{
    return "bound";
}

int metrics_write(const struct router *router, struct buf *to)
{
    return buf_append_text(to, "sandbox_fake 1\n");
}

void fake_reply(struct fake_call *call, const char *body)
{
    answer(call, &(struct answer){ .kind = ANSWER_REPLY, .body = span_of_text(body) });
}

void fake_error(struct fake_call *call, const char *envelope)
{
    answer(call, &(struct answer){ .kind = ANSWER_ERROR, .body = span_of_text(envelope) });
}

void fake_event(struct fake_call *call, const char *body)
{
    call->caller->events->event(call->caller->ctx, call->tag, span_of_text(body));
}
