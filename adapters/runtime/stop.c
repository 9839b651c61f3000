/* stop.c - see stop.h; and the operation `stop`. */
#include "stop.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "handlers.h"
#include "log.h"
#include "sandbox_state.h"
#include "sandboxes.h"

/* Waits. */

void stop_wait_init(struct stop_wait *wait, void (*done)(void *ctx, struct sandbox_error *err),
                    void *ctx)
{
    list_init(&wait->node);
    wait->until_deleted = false;
    wait->done = done;
    wait->ctx = ctx;
}

void stop_wait_cancel(struct stop_wait *wait)
{
    list_remove(&wait->node);
}

/* FAILURE: NULL when the machine is gone. Waits begun meanwhile stay for their own stop. */
static void tell_waits(struct sandbox *sandbox, bool deleted, const char *failure)
{
    struct list telling, *node;

    list_init(&telling);
    list_move_all(&telling, &sandbox->stop.waits);
    while ((node = list_pop(&telling))) {
        struct stop_wait *wait = LIST_ENTRY(node, struct stop_wait, node);
        struct sandbox_error err = { 0 };

        if (!failure && wait->until_deleted && !deleted) {
            list_append(&sandbox->stop.waits, node);
            continue;
        }
        if (failure) {
            (void)sandbox_error_set(&err, S300, "sandbox %s cannot be stopped: %s", sandbox->id,
                                    failure);
            sandbox_error_set_outcome(&err, OUTCOME_MAY_HAVE_RUN);
        }
        wait->done(wait->ctx, failure ? &err : NULL);
        sandbox_error_done(&err);
    }
}

/* Phases. */

static void stop_enter(struct sandbox *sandbox, enum stop_phase phase)
{
    static const unsigned moves[] = {
        [STOP_IDLE] = 1u << STOP_ASKED | 1u << STOP_KILLED | 1u << STOP_FAILED |
                      1u << STOP_GONE,
        [STOP_ASKED] = 1u << STOP_KILLED | 1u << STOP_FAILED | 1u << STOP_GONE,
        [STOP_KILLED] = 1u << STOP_FAILED | 1u << STOP_GONE,
        [STOP_FAILED] = 1u << STOP_IDLE | 1u << STOP_GONE,
        [STOP_GONE] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == STOP_PHASE_MAX, "moves of each phase");

    assert(moves[sandbox->stop.phase] & 1u << phase);
    sandbox->stop.phase = phase;
}

static void stop_fail(struct sandbox *sandbox, const char *failure)
{
    loop_timer_disarm(sandbox->stop.timer);
    (void)snprintf(sandbox->stop.failure, sizeof(sandbox->stop.failure), "%s", failure);
    log_event(LOG_ERROR, "sandbox_not_killed", log_text("sandbox", sandbox->id),
              log_text("reason", sandbox->stop.failure));
    stop_enter(sandbox, STOP_FAILED);
    loop_notify(adapter_loop(sandbox->adapter), &sandbox->stop.report);
}

static void stop_kill(struct sandbox *sandbox)
{
    struct sandbox_error err = { 0 };

    if (adapter_ops(sandbox->adapter)->machine_kill(sandbox->machine, &err) < 0) {
        stop_fail(sandbox, err.message);
        sandbox_error_done(&err);
        return;
    }
    stop_enter(sandbox, STOP_KILLED);
    loop_timer_arm(sandbox->stop.timer, STOP_KILL_MS);
}

static void on_timer(void *ctx)
{
    struct sandbox *sandbox = ctx;

    if (sandbox->stop.phase == STOP_ASKED)
        stop_kill(sandbox);
    else if (sandbox->stop.phase == STOP_KILLED)
        stop_fail(sandbox, "its machine did not end within 5 s of being killed");
}

/* A guest that has said that it ends has nothing left to do that anybody could see; its kernel
 * would only take its time. */
static void on_poweroff_ended(void *ctx, const void *reply, struct sandbox_error *err,
                              bool lost)
{
    struct sandbox *sandbox = ctx;

    sandbox->stop.poweroff = NULL;
    if (reply && sandbox->stop.phase == STOP_ASKED)
        stop_kill(sandbox);
}

/* A guest that cannot be asked is killed at once. */
static void stop_ask(struct sandbox *sandbox)
{
    static const struct agent_call_events events = { .ended = on_poweroff_ended };
    const struct guest_empty empty = { 0 };
    struct sandbox_error err = { 0 };
    bool asked;

    sandbox_want(sandbox);
    asked = sandbox->link && agent_call(sandbox->link, GUEST_poweroff, &empty, &events, sandbox,
                                        &sandbox->stop.poweroff, &err) == 0;
    sandbox_error_done(&err);
    if (!asked) {
        stop_kill(sandbox);
        return;
    }
    stop_enter(sandbox, STOP_ASKED);
    loop_timer_arm(sandbox->stop.timer, STOP_POWEROFF_MS);
}

/* What was asked in vain is no call in flight any more. */
static void forget_poweroff(struct sandbox *sandbox)
{
    struct agent_call *poweroff = take_ptr(sandbox->stop.poweroff);

    if (poweroff)
        agent_call_abandon(poweroff);
}

static void set_why(struct sandbox *sandbox, const char *why)
{
    if (!sandbox->why[0])
        (void)snprintf(sandbox->why, sizeof(sandbox->why), "%s", why);
}

static void stop_begin(struct sandbox *sandbox, const char *why)
{
    enum sandbox_state before = sandbox->state;

    assert(sandbox->machine);
    set_why(sandbox, why);
    sandbox->stop.back = before == SANDBOX_READY ? SANDBOX_READY : SANDBOX_UNREACHABLE;
    sandbox_set_state(sandbox, SANDBOX_STOPPING);
    if (sandbox->link)
        agent_link_fail_calls(sandbox->link, why);
    if (before == SANDBOX_READY)
        stop_ask(sandbox);
    else
        stop_kill(sandbox);
    if (before == SANDBOX_CREATING)
        sandbox_settle_waits(sandbox);
}

void sandbox_stop(struct sandbox *sandbox, const char *why, struct stop_wait *wait)
{
    assert(sandbox->state != SANDBOX_GONE);
    if (wait)
        list_append(&sandbox->stop.waits, &wait->node);
    if (sandbox->state != SANDBOX_STOPPING)
        stop_begin(sandbox, why);
}

void sandbox_link_closed(struct sandbox *sandbox, const char *reason)
{
    agent_link_free(take_ptr(sandbox->link));
    if (sandbox->state == SANDBOX_STOPPING) {
        sandbox->stop.back = SANDBOX_UNREACHABLE;
        if (sandbox->stop.phase == STOP_ASKED)
            stop_kill(sandbox);
        return;
    }
    sandbox_stop(sandbox, reason, NULL);
}

/* Outcomes. */

static void report_failure(struct sandbox *sandbox)
{
    enum sandbox_state back = sandbox->link ? sandbox->stop.back : SANDBOX_UNREACHABLE;

    forget_poweroff(sandbox);
    stop_enter(sandbox, STOP_IDLE);
    sandbox->why[0] = 0;
    sandbox_set_state(sandbox, back);
    tell_waits(sandbox, false, sandbox->stop.failure);
}

static void on_report(void *ctx)
{
    struct sandbox *sandbox = ctx;

    (void)sandbox_ref(sandbox);
    if (sandbox->stop.phase == STOP_FAILED) {
        report_failure(sandbox);
    } else {
        if (sandbox->machine)
            adapter_ops(sandbox->adapter)->machine_free(take_ptr(sandbox->machine));
        tell_waits(sandbox, true, NULL);
        sandbox_unref(sandbox); /* of sandbox_end() */
    }
    sandbox_unref(sandbox);
}

/* The sandbox is no more; its machine is freed in the next turn, after the answers have left.
 */
static void sandbox_end(struct sandbox *sandbox, const char *why)
{
    bool creating = sandbox->state == SANDBOX_CREATING;

    (void)sandbox_ref(sandbox); /* dropped by on_report() */
    set_why(sandbox, why);
    loop_timer_disarm(sandbox->stop.timer);
    stop_enter(sandbox, STOP_GONE);
    sandbox_set_state(sandbox, SANDBOX_GONE);
    agent_link_free(take_ptr(sandbox->link));
    registry_bury(sandbox->registry, sandbox);
    if (creating)
        sandbox_settle_waits(sandbox);
    sandbox_tell_watches(sandbox);
    tell_waits(sandbox, false, NULL);
    loop_notify(adapter_loop(sandbox->adapter), &sandbox->stop.report);
}

void sandbox_machine_gone(struct sandbox *sandbox, const char *why)
{
    sandbox_end(sandbox, why);
}

void sandbox_discard(struct sandbox *sandbox, const char *why)
{
    assert(sandbox->state == SANDBOX_CREATING && !sandbox->machine);
    sandbox_end(sandbox, why);
}

int stop_init(struct sandbox *sandbox)
{
    list_init(&sandbox->stop.waits);
    loop_notice_init(&sandbox->stop.report, on_report, sandbox);
    return loop_timer_new(adapter_loop(sandbox->adapter), on_timer, sandbox,
                          &sandbox->stop.timer);
}

void stop_done(struct sandbox *sandbox)
{
    if (!sandbox->stop.timer)
        return;
    loop_notice_cancel(adapter_loop(sandbox->adapter), &sandbox->stop.report);
    loop_timer_free(sandbox->stop.timer);
}

/* The operation (contract 5.4). */

struct stop_call {
    struct request *request;
    struct sandbox *sandbox; /* one reference */
    struct sandbox_wait boot;
    struct stop_wait end;
};

static void call_answer(struct stop_call *call, struct sandbox_error *err)
{
    struct stop_reply reply = { .sandbox_id = (char *)sandbox_id(call->sandbox),
                                .stopped = true };

    if (err)
        request_fail(call->request, err);
    else
        request_reply(call->request, &reply);
    sandbox_unref(call->sandbox);
    free(call);
}

static void on_stopped(void *ctx, struct sandbox_error *err)
{
    call_answer(ctx, err);
}

/* The boot is over, well or not: a machine that failed to boot is being stopped already. */
static void on_boot_over(void *ctx, struct sandbox_error *err)
{
    struct stop_call *call = ctx;

    if (call->sandbox->state == SANDBOX_GONE)
        call_answer(call, NULL);
    else
        sandbox_stop(call->sandbox, "it was stopped", &call->end);
}

void handle_stop(struct request *request)
{
    const struct stop_request *body = request_body(request);
    struct registry *registry = sandboxes_registry(adapter_sandboxes(request_adapter(request)));
    char id[UUID_TEXT_BYTES];
    struct sandbox *sandbox;
    struct sandbox_error err = { 0 };
    struct stop_call *call;

    if (sandbox_read_id(body->sandbox_id, id, &err) < 0 ||
        registry_find(registry, id, &sandbox, &err) < 0) {
        request_fail(request, &err);
        return;
    }
    call = calloc(1, sizeof(*call));
    if (!call) {
        (void)sandbox_error_set(&err, S300, "no memory to stop sandbox %s", id);
        sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
        request_fail(request, &err);
        return;
    }
    call->request = request;
    call->sandbox = sandbox_ref(sandbox);
    sandbox_wait_init(&call->boot, on_boot_over, call);
    stop_wait_init(&call->end, on_stopped, call);
    call->end.until_deleted = body->wait;
    sandbox_when_ready(sandbox, &call->boot);
}
