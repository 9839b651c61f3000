/* passthrough.c - see passthrough.h. */
#include "passthrough.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "log.h"
#include "metrics.h"
#include "refusal.h"
#include "router.h"
#include "router_limits.h"

#define SLOTS_AT_FIRST 64u
#define SCRATCH_KEEP_BYTES (256u * 1024) /* a bigger message's memory is given back */

static const bool moves[PENDING_STATE_MAX][PENDING_STATE_MAX] = {
    [PENDING_FREE] = { [PENDING_FORWARDED] = true, [PENDING_DETACHED] = true },
    [PENDING_FORWARDED] = { [PENDING_FREE] = true,
                            [PENDING_DETACHED] = true,
                            [PENDING_TOMBSTONE] = true },
    [PENDING_DETACHED] = { [PENDING_FREE] = true },
    [PENDING_TOMBSTONE] = { [PENDING_FREE] = true },
};

/* No log line: log_forwarded() and log_answered() tell of a call, at a level that is off. */
static void pending_set_state(struct pending *pending, enum pending_state state)
{
    assert(moves[pending->state][state]);
    pending->state = state;
}

static uint64_t pending_id(const struct pending *pending)
{
    return (uint64_t)pending->generation << 32 | pending->slot;
}

/* The log, for who follows one call: the adapter says the same number. */

static const char *op_text(const struct pending *pending)
{
    return pending->metrics_op < OP_MAX ? operations[pending->metrics_op].name : "other";
}

static void log_forwarded(const struct pending *pending, struct span traceparent)
{
    char trace[ENVELOPE_TRACE_LOGGED_BYTES + 1] = "";

    if (traceparent.data && traceparent.size <= ENVELOPE_TRACE_LOGGED_BYTES)
        memcpy(trace, traceparent.data, traceparent.size);
    log_event(LOG_DEBUG, "call_forwarded", log_uint("call", pending_id(pending)),
              log_text("op", op_text(pending)), log_text("adapter", pending->adapter->name),
              log_text("traceparent", trace[0] ? trace : NULL));
}

static void log_answered(const struct pending *pending, unsigned code)
{
    log_event(LOG_DEBUG, "call_answered", log_uint("call", pending_id(pending)),
              log_text("op", op_text(pending)), log_text("code", metrics_code_text(code)),
              log_uint("took_us", metrics_now_us() - pending->started_us));
}

/* Slots. */

static int slots_grow(struct passthrough *passthrough)
{
    uint32_t capacity = passthrough->slot_capacity ? passthrough->slot_capacity * 2
                                                   : SLOTS_AT_FIRST;
    struct pending **slots = reallocarray(passthrough->slots, capacity, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    passthrough->slots = slots;
    passthrough->slot_capacity = capacity;
    return 0;
}

/* A free slot, out of the free list; NULL: CALLS_MAX are in use, or no memory. */
static struct pending *slot_take(struct passthrough *passthrough)
{
    struct list *node = list_pop(&passthrough->free);
    struct pending *pending;

    if (node)
        return LIST_ENTRY(node, struct pending, of_caller);
    if (passthrough->slot_count == CALLS_MAX)
        return NULL;
    if (passthrough->slot_count == passthrough->slot_capacity && slots_grow(passthrough) < 0)
        return NULL;
    pending = calloc(1, sizeof(*pending));
    if (!pending)
        return NULL;
    pending->router = passthrough->router;
    pending->slot = passthrough->slot_count;
    list_init(&pending->of_adapter);
    list_init(&pending->of_caller);
    passthrough->slots[passthrough->slot_count++] = pending;
    return pending;
}

static void pending_leave_caller(struct pending *pending)
{
    if (!pending->caller)
        return;
    list_remove(&pending->of_caller);
    pending->caller->in_flight--;
    pending->caller = NULL;
}

/* The adapter has answered, or never will. */
static void pending_release(struct pending *pending)
{
    struct passthrough *passthrough = &pending->router->passthrough;
    struct adapter *adapter = pending->adapter;

    pending_leave_caller(pending);
    if (pending->state == PENDING_TOMBSTONE)
        adapter->owed--;
    else
        passthrough->open--;
    pending_set_state(pending, PENDING_FREE);
    if (pending->deadline)
        loop_timer_disarm(pending->deadline);
    list_remove(&pending->of_adapter);
    pending->adapter = NULL;
    list_prepend(&passthrough->free, &pending->of_caller);
    passthrough->in_use--;
    adapter->in_flight--;
    adapter_check_idle(adapter);
}

static void check_idle(struct passthrough *passthrough)
{
    if (passthrough->open == 0 && passthrough->idle)
        passthrough->idle(passthrough->idle_ctx);
}

/* Answers. */

/* What the caller is told; taken out of the call because telling it may free or reuse it. */
struct promise {
    struct router *router;
    struct caller *caller;
    uint64_t tag;
    answer_filter_fn filter;
};

static struct promise promise_of(const struct pending *pending)
{
    return (struct promise){
        .router = pending->router,
        .caller = pending->caller,
        .tag = pending->tag,
        .filter = pending->filter,
    };
}

static void promise_keep(const struct promise *promise, const struct answer *answer)
{
    _cleanup_(buf_done)
    struct buf body = { 0 };
    struct answer filtered;

    if (promise->filter) {
        promise->filter(promise->router, answer, &body, &filtered);
        answer = &filtered;
    }
    promise->caller->events->answer(promise->caller->ctx, promise->tag, answer);
    check_idle(&promise->router->passthrough);
}

static unsigned code_of_answer(const struct answer *answer)
{
    switch (answer->kind) {
    case ANSWER_REPLY:
        return SANDBOX_OK;
    case ANSWER_ERROR:
        return metrics_code_of(answer->body);
    case ANSWER_EXPIRED:
        return METRICS_CODE_EXPIRED;
    default:
        return METRICS_CODE_FAILED;
    }
}

static void pending_count(const struct pending *pending, unsigned code)
{
    metrics_call(&pending->router->metrics, pending->metrics_op, code,
                 metrics_now_us() - pending->started_us);
    if (log_enabled(LOG_DEBUG))
        log_answered(pending, code);
}

/* The end of a call by its adapter's answer or loss. */
static void pending_answer(struct pending *pending, const struct answer *answer)
{
    struct promise promise = promise_of(pending);
    enum pending_state state = pending->state;

    if (state != PENDING_TOMBSTONE) /* that one was counted when it was cancelled */
        pending_count(pending, code_of_answer(answer));
    pending_release(pending);
    if (state == PENDING_FORWARDED)
        promise_keep(&promise, answer);
    else
        check_idle(&promise.router->passthrough);
}

/* It stays its caller's in number: who cancels all the time makes no more calls than others. */
static void pending_bury(struct pending *pending)
{
    struct envelope cancel = { .kind = ENVELOPE_CANCEL, .id = pending_id(pending) };

    pending->router->passthrough.open--;
    pending_set_state(pending, PENDING_TOMBSTONE);
    if (pending->deadline)
        loop_timer_disarm(pending->deadline);
    if (pending->adapter->link)
        (void)link_send_envelope(pending->adapter->link, &cancel); /* else it is being lost */
    if (++pending->adapter->owed > ADAPTER_OWED_MAX && pending->adapter->link)
        link_break(pending->adapter->link, "owes the answers of too many cancelled calls");
}

void pending_cancel(struct pending *pending)
{
    struct passthrough *passthrough = &pending->router->passthrough;

    assert(pending->state == PENDING_FORWARDED);
    pending_count(pending, METRICS_CODE_CANCELLED);
    pending_bury(pending);
    check_idle(passthrough);
}

void pending_abandon(struct pending *pending)
{
    if (pending->state == PENDING_FORWARDED)
        pending_cancel(pending);
    pending_leave_caller(pending);
}

static void on_deadline(void *ctx)
{
    struct pending *pending = ctx;
    struct promise promise = promise_of(pending);
    struct answer answer = {
        .kind = ANSWER_EXPIRED,
        .message = "the call's deadline has passed; the adapter was told to cancel it",
    };

    assert(pending->state == PENDING_FORWARDED);
    pending_count(pending, METRICS_CODE_EXPIRED);
    pending_bury(pending);
    promise_keep(&promise, &answer);
}

/* Forwarding. */

static int send_call(struct passthrough *passthrough, const struct pending *pending,
                     const struct forward *forward)
{
    struct envelope envelope = {
        .kind = ENVELOPE_CALL,
        .id = pending_id(pending),
        .operation = forward->operation,
        .deadline_ms = forward->deadline_ms,
        .body = forward->call->body,
        .traceparent = forward->call->traceparent,
    };
    struct buf *scratch = &passthrough->scratch;
    int result = envelope_encode(&envelope, scratch);

    if (result == 0)
        result = link_send(pending->adapter->link, scratch->data, scratch->size);
    if (scratch->capacity > SCRATCH_KEEP_BYTES)
        buf_done(scratch);
    buf_clear(scratch);
    return result;
}

static int pending_arm(struct pending *pending, uint64_t deadline_ms)
{
    int result = 0;

    if (deadline_ms == ENVELOPE_NO_DEADLINE)
        return 0;
    if (!pending->deadline)
        result = loop_timer_new(pending->router->loop, on_deadline, pending,
                                &pending->deadline);
    if (result == 0)
        loop_timer_arm(pending->deadline, deadline_ms);
    return result;
}

static void pending_begin(struct pending *pending, struct caller *caller,
                          const struct forward *forward)
{
    struct passthrough *passthrough = &pending->router->passthrough;
    const struct call *call = forward->call;

    pending_set_state(pending, call->detached ? PENDING_DETACHED : PENDING_FORWARDED);
    pending->generation++;
    if (pending->generation == 0)
        pending->generation = 1; /* so that no id is 0 */
    pending->adapter = forward->adapter;
    pending->caller = call->detached ? NULL : caller;
    pending->tag = call->tag;
    pending->started_us = metrics_now_us();
    pending->filter = forward->filter;
    pending->metrics_op = (uint16_t)forward->metrics_op;
    pending->side_effects = forward->side_effects;
    pending->wants_events = call->wants_events && !call->detached;
    list_append(&forward->adapter->calls, &pending->of_adapter);
    forward->adapter->in_flight++;
    passthrough->in_use++;
    passthrough->open++;
    if (call->detached)
        return;
    list_append(&caller->calls, &pending->of_caller);
    caller->in_flight++;
}

static void refuse_call(struct router *router, struct caller *caller,
                        const struct forward *forward, struct refusal *own_refusal)
{
    struct promise promise = {
        .router = router, .caller = caller, .tag = forward->call->tag, .filter = forward->filter
    };

    metrics_call(&router->metrics, forward->metrics_op, own_refusal->code, 0);
    if (!forward->call->detached)
        promise_keep(&promise, &own_refusal->answer);
    refusal_done(own_refusal);
}

static enum sandbox_outcome outcome_of(bool side_effects, enum sandbox_outcome outcome)
{
    return side_effects ? outcome : OUTCOME_NONE;
}

struct pending *passthrough_forward(struct passthrough *passthrough, struct caller *caller,
                                    const struct forward *forward)
{
    struct router *router = passthrough->router;
    struct pending *pending = slot_take(passthrough);
    struct refusal refusal;

    if (!pending) {
        refuse_limit(&refusal, router->settings->router.docs_base, "calls in flight",
                     CALLS_MAX);
        refuse_call(router, caller, forward, &refusal);
        return NULL;
    }
    pending_begin(pending, caller, forward);
    if (log_enabled(LOG_DEBUG))
        log_forwarded(pending, forward->call->traceparent);
    if (send_call(passthrough, pending, forward) < 0 ||
        pending_arm(pending, forward->call->detached ? ENVELOPE_NO_DEADLINE
                                                     : forward->deadline_ms) < 0) {
        pending_release(pending);
        refuse_unavailable(&refusal, router->settings->router.docs_base, forward->adapter->name,
                           "does not take the call",
                           outcome_of(forward->side_effects, OUTCOME_NEVER_RAN));
        refuse_call(router, caller, forward, &refusal);
        return NULL;
    }
    return forward->call->detached ? NULL : pending;
}

/* What the adapter says. */

/* NULL: it fits no call of ADAPTER that waits for an answer; *ret_late: it once did. */
static struct pending *pending_find(const struct passthrough *passthrough,
                                    const struct adapter *adapter, uint64_t id, bool *ret_late)
{
    uint32_t slot = (uint32_t)id;
    uint32_t generation = (uint32_t)(id >> 32);
    struct pending *pending;

    *ret_late = false;
    if (slot >= passthrough->slot_count)
        return NULL;
    pending = passthrough->slots[slot];
    if (generation == pending->generation && pending->state != PENDING_FREE)
        return pending->adapter == adapter ? pending : NULL;
    *ret_late = generation != 0 && generation <= pending->generation;
    return NULL;
}

void passthrough_message(struct passthrough *passthrough, struct adapter *adapter,
                         const struct envelope *envelope, uint8_t *data, size_t size)
{
    bool late;
    struct pending *pending = pending_find(passthrough, adapter, envelope->id, &late);
    struct answer answer = {
        .kind = envelope->kind == ENVELOPE_REPLY ? ANSWER_REPLY : ANSWER_ERROR,
        .body = envelope->body,
        .envelope = data,
        .envelope_size = size,
    };

    if (!pending) {
        passthrough->router->metrics.late_answers++;
        if (!late)
            link_break(adapter->link, "an answer to a call that was never made");
        return;
    }
    if (envelope->kind != ENVELOPE_EVENT)
        pending_answer(pending, &answer);
    else if (pending->state == PENDING_FORWARDED && pending->wants_events)
        pending->caller->events->event(pending->caller->ctx, pending->tag, envelope->body);
}

/* Ends without the adapter. */

static void pending_fail(struct pending *pending, const char *name, const char *why)
{
    struct refusal refusal;

    refuse_unavailable(&refusal, pending->router->settings->router.docs_base, name, why,
                       outcome_of(pending->side_effects, OUTCOME_MAY_HAVE_RUN));
    pending_answer(pending, &refusal.answer);
    refusal_done(&refusal);
}

void passthrough_adapter_lost(struct passthrough *passthrough, struct adapter *adapter)
{
    unsigned failed = adapter->in_flight;

    assert(!adapter->link);
    while (!list_empty(&adapter->calls))
        pending_fail(LIST_ENTRY(adapter->calls.next, struct pending, of_adapter), adapter->name,
                     "was lost while the call was in flight");
    if (failed > 0)
        log_event(LOG_WARN, "calls_lost", log_text("adapter", adapter->name),
                  log_uint("calls", failed));
}

void passthrough_give_up(struct passthrough *passthrough)
{
    for (uint32_t slot = 0; slot < passthrough->slot_count; slot++) {
        struct pending *pending = passthrough->slots[slot];
        struct promise promise = promise_of(pending);
        struct refusal refusal;

        if (pending->state != PENDING_FORWARDED)
            continue;
        refuse_unavailable(&refusal, pending->router->settings->router.docs_base,
                           pending->adapter->name,
                           "did not answer before the router's shutdown",
                           outcome_of(pending->side_effects, OUTCOME_MAY_HAVE_RUN));
        pending_count(pending, refusal.code);
        pending_bury(pending);
        promise_keep(&promise, &refusal.answer);
        refusal_done(&refusal);
    }
}

/* Life. */

void passthrough_init(struct passthrough *passthrough, struct router *router)
{
    *passthrough = (struct passthrough){ .router = router };
    list_init(&passthrough->free);
}

void passthrough_done(struct passthrough *passthrough)
{
    assert(passthrough->in_use == 0);
    for (uint32_t slot = 0; slot < passthrough->slot_count; slot++) {
        loop_timer_free(passthrough->slots[slot]->deadline);
        free(passthrough->slots[slot]);
    }
    free(passthrough->slots);
    buf_done(&passthrough->scratch);
}
