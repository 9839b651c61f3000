/* sandbox.c - see sandbox.h. */
#include "sandbox.h"

#include <assert.h>
#include <string.h>

#include "fault.h"
#include "idle.h"
#include "image_cache.h"
#include "log.h"
#include "sandbox_state.h"

static const char *const state_names[] = {
    [SANDBOX_CREATING] = "creating",
    [SANDBOX_READY] = "ready",
    [SANDBOX_UNREACHABLE] = "unreachable",
    [SANDBOX_STOPPING] = "stopping",
    [SANDBOX_GONE] = "gone",
};
static_assert(ARRAY_SIZE(state_names) == SANDBOX_STATE_MAX, "a name for each state");

#define TO(state) (1u << (state))
static const unsigned state_moves[] = {
    [SANDBOX_CREATING] = TO(SANDBOX_READY) | TO(SANDBOX_STOPPING) | TO(SANDBOX_GONE),
    [SANDBOX_READY] = TO(SANDBOX_UNREACHABLE) | TO(SANDBOX_STOPPING) | TO(SANDBOX_GONE),
    [SANDBOX_UNREACHABLE] = TO(SANDBOX_READY) | TO(SANDBOX_STOPPING) | TO(SANDBOX_GONE),
    /* Back, when the machine cannot be killed. */
    [SANDBOX_STOPPING] = TO(SANDBOX_READY) | TO(SANDBOX_UNREACHABLE) | TO(SANDBOX_GONE),
    [SANDBOX_GONE] = 0,
};
static_assert(ARRAY_SIZE(state_moves) == SANDBOX_STATE_MAX, "moves of each state");

void sandbox_set_state(struct sandbox *sandbox, enum sandbox_state state)
{
    assert(state_moves[sandbox->state] & TO(state));
    log_event(LOG_INFO, "sandbox_state", log_text("sandbox", sandbox->id),
              log_text("from", state_names[sandbox->state]), log_text("to", state_names[state]),
              log_text("why", sandbox->why[0] ? sandbox->why : NULL));
    sandbox->state = state;
}

/* Birth and death. */

static bool sandbox_copy_spec(struct sandbox *sandbox, const struct sandbox_spec *spec)
{
    sandbox->spec = *spec;
    sandbox->spec.image = strdup(spec->image);
    sandbox->spec.name = spec->name ? strdup(spec->name) : NULL;
    return sandbox->spec.image && (!spec->name || sandbox->spec.name);
}

struct sandbox *sandbox_new(struct adapter *adapter, struct registry *registry,
                            const struct sandbox_spec *spec)
{
    _cleanup_(sandbox_unrefp)
    struct sandbox *sandbox = calloc(1, sizeof(*sandbox));

    if (!sandbox)
        return NULL;
    sandbox->adapter = adapter;
    sandbox->registry = registry;
    sandbox->references = 1;
    sandbox->state = SANDBOX_CREATING;
    sandbox->created_at = fault_wall_seconds(sandbox->adapter);
    list_init(&sandbox->node);
    list_init(&sandbox->waits);
    list_init(&sandbox->watches);
    sandbox_touch(sandbox);
    if (!sandbox_copy_spec(sandbox, spec) || fault_new_id(sandbox->adapter, sandbox->id) < 0 ||
        stop_init(sandbox) < 0)
        return NULL;
    return take_ptr(sandbox);
}

struct sandbox *sandbox_ref(struct sandbox *sandbox)
{
    assert(sandbox->references > 0);
    sandbox->references++;
    return sandbox;
}

void sandbox_unref(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    assert(sandbox->references > 0);
    if (--sandbox->references > 0)
        return;
    assert(!sandbox->machine && !sandbox->link && !sandbox->boot);
    assert(list_empty(&sandbox->waits) && list_empty(&sandbox->watches));
    stop_done(sandbox);
    image_unref(sandbox->image);
    free((char *)sandbox->spec.image);
    free((char *)sandbox->spec.name);
    free(sandbox);
}

/* What it is. */

const char *sandbox_id(const struct sandbox *sandbox)
{
    return sandbox->id;
}

struct loop *sandbox_loop(const struct sandbox *sandbox)
{
    return adapter_loop(sandbox->adapter);
}

enum sandbox_state sandbox_state(const struct sandbox *sandbox)
{
    return sandbox->state;
}

const char *sandbox_state_name(enum sandbox_state state)
{
    return state_names[state];
}

const struct sandbox_spec *sandbox_spec(const struct sandbox *sandbox)
{
    return &sandbox->spec;
}

int64_t sandbox_created_at(const struct sandbox *sandbox)
{
    return sandbox->created_at;
}

uint32_t sandbox_execs(const struct sandbox *sandbox)
{
    return sandbox->execs;
}

const char *sandbox_lost_cause(const struct sandbox *sandbox, const char *reason)
{
    bool ending = sandbox->state == SANDBOX_STOPPING || sandbox->state == SANDBOX_GONE;

    return ending && sandbox->why[0] ? sandbox->why : reason;
}

void sandbox_want(struct sandbox *sandbox)
{
    const struct backend_ops *ops = adapter_ops(sandbox->adapter);

    if (ops->machine_wanted && sandbox->machine)
        ops->machine_wanted(sandbox->machine);
}

int sandbox_call(struct sandbox *sandbox, enum guest_operation_id operation,
                 const void *request, const struct agent_call_events *events, void *ctx,
                 struct agent_call **ret_call, struct sandbox_error *err)
{
    if (sandbox->state == SANDBOX_READY) {
        sandbox_want(sandbox);
        return agent_call(sandbox->link, operation, request, events, ctx, ret_call, err);
    }
    return sandbox_error_set(err, S300, "sandbox %s is %s%s%s", sandbox->id,
                             state_names[sandbox->state], sandbox->why[0] ? ": " : "",
                             sandbox->why);
}

void sandbox_set_image(struct sandbox *sandbox, const struct image *own_image)
{
    assert(sandbox->state == SANDBOX_CREATING && !sandbox->image);
    sandbox->image = own_image;
}

/* The order of checks. */

int sandbox_read_id(const char *text, char ret_id[UUID_TEXT_BYTES], struct sandbox_error *err)
{
    if (uuid_parse(text, ret_id) == 0)
        return 0;
    return sandbox_error_set(
        err, S001, "sandbox_id must be a UUID (8-4-4-4-12 hex digits), got \"%.200s\"", text);
}

int sandbox_check_open(const struct sandbox *sandbox, struct sandbox_error *err)
{
    if (sandbox->state != SANDBOX_STOPPING)
        return 0;
    return sandbox_error_set(err, S004, "sandbox %s is being stopped: %s", sandbox->id,
                             sandbox->why);
}

/* Waits and watches. */

void sandbox_wait_init(struct sandbox_wait *wait,
                       void (*done)(void *ctx, struct sandbox_error *err), void *ctx)
{
    list_init(&wait->node);
    wait->done = done;
    wait->ctx = ctx;
}

void sandbox_wait_cancel(struct sandbox_wait *wait)
{
    list_remove(&wait->node);
}

static void wait_finish(struct sandbox *sandbox, struct sandbox_wait *wait)
{
    struct sandbox_error err = { 0 };

    if (sandbox->state == SANDBOX_UNREACHABLE)
        (void)sandbox_error_set(&err, S300, "the guest agent of sandbox %s does not answer",
                                sandbox->id);
    else if (sandbox->state != SANDBOX_READY)
        (void)sandbox_error_set(&err, S300, "sandbox %s did not boot: %s", sandbox->id,
                                sandbox->why);
    wait->done(wait->ctx, err.code == SANDBOX_OK ? NULL : &err);
    sandbox_error_done(&err);
}

void sandbox_when_ready(struct sandbox *sandbox, struct sandbox_wait *wait)
{
    if (sandbox->state == SANDBOX_CREATING)
        list_append(&sandbox->waits, &wait->node);
    else
        wait_finish(sandbox, wait);
}

void sandbox_settle_waits(struct sandbox *sandbox)
{
    struct list *node;

    assert(sandbox->state != SANDBOX_CREATING);
    (void)sandbox_ref(sandbox);
    while ((node = list_pop(&sandbox->waits)))
        wait_finish(sandbox, LIST_ENTRY(node, struct sandbox_wait, node));
    sandbox_unref(sandbox);
}

void sandbox_watch_init(struct sandbox_watch *watch, void (*gone)(void *ctx, const char *why),
                        void *ctx)
{
    list_init(&watch->node);
    watch->gone = gone;
    watch->ctx = ctx;
}

void sandbox_watch_begin(struct sandbox *sandbox, struct sandbox_watch *watch)
{
    list_append(&sandbox->watches, &watch->node);
}

void sandbox_watch_end(struct sandbox_watch *watch)
{
    list_remove(&watch->node);
}

void sandbox_tell_watches(struct sandbox *sandbox)
{
    struct list *node;

    while ((node = list_pop(&sandbox->watches))) {
        struct sandbox_watch *watch = LIST_ENTRY(node, struct sandbox_watch, node);

        watch->gone(watch->ctx, sandbox->why);
    }
}

/* Slots. */

static uint32_t effective_cap(uint32_t cap)
{
    return cap > 0 ? cap : 1;
}

uint32_t sandbox_slots_free(const struct sandbox *sandbox, uint32_t cap)
{
    cap = effective_cap(cap);
    return cap > sandbox->execs ? cap - sandbox->execs : 0;
}

int sandbox_take_slot(struct sandbox *sandbox, uint32_t cap, struct sandbox_error *err)
{
    if (sandbox_slots_free(sandbox, cap) == 0)
        return sandbox_error_set(
            err, S003,
            "sandbox %s runs %u execs, its cap max_concurrent_exec_per_sandbox is %u",
            sandbox->id, sandbox->execs, effective_cap(cap));
    sandbox->execs++;
    sandbox_touch(sandbox);
    return 0;
}

void sandbox_give_slot(struct sandbox *sandbox)
{
    assert(sandbox->execs > 0);
    sandbox->execs--;
    sandbox_touch(sandbox);
}

/* Idle clock. */

void sandbox_touch(struct sandbox *sandbox)
{
    sandbox->active_ms = loop_now_ms(adapter_loop(sandbox->adapter));
}

uint64_t sandbox_idle_secs(const struct sandbox *sandbox)
{
    const struct backend_ops *ops = adapter_ops(sandbox->adapter);
    int64_t payload = -1;

    if (sandbox->machine && ops->machine_last_payload)
        payload = ops->machine_last_payload(sandbox->machine);
    return idle_secs(loop_now_ms(adapter_loop(sandbox->adapter)), sandbox->active_ms, payload);
}
