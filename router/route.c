/* route.c - see route.h. */
#include "route.h"

#include <stdio.h>

#include "engine.h"
#include "info.h"
#include "refusal.h"
#include "router.h"
#include "router_limits.h"

/* `sandbox::fs::ls` is the operation `fs::ls` in `sandbox`. */
struct function {
    struct span owner;
    struct span name;
    const struct operation *operation; /* NULL: in no table */
    unsigned metrics_op;
};

static bool function_split(struct span text, struct function *ret_function)
{
    const char *colons = text.data ? memmem(text.data, text.size, "::", 2) : NULL;

    if (!colons || colons == text.data || text.size > FUNCTION_NAME_MAX_BYTES)
        return false;
    ret_function->owner = (struct span){ .data = text.data,
                                         .size = (size_t)(colons - text.data) };
    ret_function->name = (struct span){
        .data = colons + 2,
        .size = text.size - ret_function->owner.size - 2,
    };
    if (ret_function->name.size == 0)
        return false;
    ret_function->operation = operation_find(ret_function->name.data, ret_function->name.size);
    ret_function->metrics_op = ret_function->operation ? (unsigned)ret_function->operation->id
                                                       : METRICS_OP_OTHER;
    return true;
}

/* Answers at once. */

static void answer_now(struct router *router, struct caller *caller, const struct call *call,
                       unsigned metrics_op, unsigned code, const struct answer *answer)
{
    metrics_call(&router->metrics, metrics_op, code, 0);
    if (!call->detached)
        caller->events->answer(caller->ctx, call->tag, answer);
}

static void answer_refusal(struct router *router, struct caller *caller,
                           const struct call *call, unsigned metrics_op,
                           struct refusal *own_refusal)
{
    answer_now(router, caller, call, metrics_op, own_refusal->code, &own_refusal->answer);
    refusal_done(own_refusal);
}

static void answer_not_found(struct router *router, struct caller *caller,
                             const struct call *call)
{
    char message[FUNCTION_NAME_MAX_BYTES + 64];
    struct span name = call->function;
    struct answer answer = { .kind = ANSWER_NOT_FOUND, .message = message };

    if (name.size > FUNCTION_NAME_MAX_BYTES)
        name.size = FUNCTION_NAME_MAX_BYTES;
    (void)snprintf(message, sizeof(message), "no function named %.*s", (int)name.size,
                   name.data ? name.data : "");
    answer_now(router, caller, call, METRICS_OP_OTHER, METRICS_CODE_NOT_FOUND, &answer);
}

static enum sandbox_outcome never_ran(const struct function *function)
{
    return function->operation && function->operation->flags & SIDE_EFFECTS ? OUTCOME_NEVER_RAN
                                                                            : OUTCOME_NONE;
}

/* NAME: of the adapter that would have been asked. */
static void answer_unavailable(struct router *router, struct caller *caller,
                               const struct call *call, const struct function *function,
                               const char *name)
{
    const char *absence = router->binding.absence;
    char why[BINDING_ABSENCE_MAX + 32];
    struct refusal refusal;

    (void)snprintf(why, sizeof(why), "is not connected%s%s", *absence ? ": " : "", absence);
    refuse_unavailable(&refusal, router->settings->router.docs_base, name,
                       router->draining ? "takes no more calls: the router is shutting down"
                                        : why,
                       never_ran(function));
    answer_refusal(router, caller, call, function->metrics_op, &refusal);
}

static void answer_mismatch(struct router *router, struct caller *caller,
                            const struct call *call, const struct function *function,
                            const struct adapter *adapter)
{
    struct refusal refusal;

    refuse_mismatch(&refusal, router->settings->router.docs_base, adapter);
    answer_refusal(router, caller, call, function->metrics_op, &refusal);
}

/* Calls to an adapter. */

static struct pending *forward_to(struct router *router, struct caller *caller,
                                  const struct call *call, const struct function *function,
                                  struct adapter *adapter)
{
    static const struct span empty_object = { .data = "{}", .size = 2 };
    struct call filled = *call;
    struct forward forward = {
        .adapter = adapter,
        .operation = function->name,
        .call = &filled,
        .deadline_ms = call->deadline_ms,
        .metrics_op = function->metrics_op,
        .side_effects = function->operation && function->operation->flags & SIDE_EFFECTS,
    };

    if (!call->body.data || call->body.size == 0)
        filled.body = empty_object;
    if (call->traceparent.size > TRACEPARENT_MAX_BYTES)
        filled.traceparent = (struct span){ 0 };
    if (call->body.size > route_max_body_bytes(router)) {
        static const struct answer too_large = {
            .kind = ANSWER_FAILED,
            .message =
                "the request is larger than sandbox.max_message_bytes allows; send large "
                "content through a channel",
        };

        answer_now(router, caller, call, function->metrics_op, METRICS_CODE_FAILED, &too_large);
        return NULL;
    }
    return passthrough_forward(&router->passthrough, caller, &forward);
}

/* Contract 2.3, in its order. */
static struct pending *call_bound(struct router *router, struct caller *caller,
                                  const struct call *call, const struct function *function)
{
    struct refusal refusal;

    switch (router->binding.state) {
    case BINDING_NONE:
        refuse_no_adapter(&refusal, router->settings->router.docs_base);
        answer_refusal(router, caller, call, function->metrics_op, &refusal);
        return NULL;
    case BINDING_MISMATCH:
        answer_mismatch(router, caller, call, function, router->binding.adapter);
        return NULL;
    case BINDING_BOUND:
        if (!router->draining)
            return forward_to(router, caller, call, function, router->binding.adapter);
        /* fall through */
    default:
        answer_unavailable(router, caller, call, function, router->binding.name);
        return NULL;
    }
}

/* `<adapter>::<op>` (contract 1). */
static struct pending *call_named(struct router *router, struct caller *caller,
                                  const struct call *call, const struct function *function)
{
    struct adapter *adapter = adapter_find(&router->adapters, function->owner);
    bool configured = router->binding.name &&
                      span_equals(function->owner, router->binding.name);

    if (!adapter && !configured)
        answer_not_found(router, caller, call);
    else if (!adapter || router->draining)
        answer_unavailable(router, caller, call, function,
                           adapter ? adapter->name : router->binding.name);
    else if (adapter->verdict != VERDICT_FITS && !span_equals(function->name, "adapter::info"))
        answer_mismatch(router, caller, call, function, adapter);
    else
        return forward_to(router, caller, call, function, adapter);
    return NULL;
}

static struct pending *call_engine(struct router *router, struct caller *caller,
                                   const struct call *call, const struct function *function)
{
    struct refusal refusal;

    if (!span_equals(function->name, "channels::create")) {
        answer_not_found(router, caller, call);
        return NULL;
    }
    engine_channels_create(router, call->body, &refusal);
    answer_refusal(router, caller, call, METRICS_OP_CHANNELS_CREATE, &refusal);
    return NULL;
}

struct pending *route_call(struct router *router, struct caller *caller,
                           const struct call *call)
{
    struct function function;

    if (!function_split(call->function, &function)) {
        answer_not_found(router, caller, call);
        return NULL;
    }
    if (span_equals(function.owner, "engine"))
        return call_engine(router, caller, call, &function);
    if (!span_equals(function.owner, "sandbox"))
        return call_named(router, caller, call, &function);
    if (!function.operation) {
        answer_not_found(router, caller, call);
        return NULL;
    }
    if (function.operation->id == OP_adapter_info)
        return info_call(router, caller, call);
    return call_bound(router, caller, call, &function);
}

/* Callers. */

void caller_init(struct caller *caller, const struct caller_events *events, void *ctx)
{
    *caller = (struct caller){ .events = events, .ctx = ctx };
    list_init(&caller->calls);
}

void route_cancel(struct pending *pending)
{
    pending_cancel(pending);
}

void route_caller_gone(struct caller *caller)
{
    while (!list_empty(&caller->calls))
        pending_abandon(LIST_ENTRY(caller->calls.next, struct pending, of_caller));
}

size_t route_max_body_bytes(const struct router *router)
{
    return router->settings->router.max_message_bytes - MESSAGE_OVERHEAD_BYTES;
}

const char *route_status(const struct router *router)
{
    return binding_state_text(router->binding.state);
}
