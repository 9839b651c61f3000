/* sandboxes.c - see sandboxes.h. */
#include "sandboxes.h"

#include <assert.h>
#include <errno.h>

#include "handlers.h"
#include "reaper.h"
#include "sandbox_state.h"

struct sandboxes {
    struct adapter *adapter;
    struct registry *registry;
    struct reaper *reaper;
    struct held_reads held_reads;
    struct live_outputs live_outputs;

    /* Shutdown. */
    void (*done)(void *ctx); /* NULL: not begun */
    void *done_ctx;
    size_t ends; /* sandboxes whose end is awaited */
    struct loop_notice finish;
};

/* One sandbox whose end the shutdown awaits. */
struct end {
    struct sandboxes *sandboxes;
    struct stop_wait wait;
};

struct registry *sandboxes_registry(const struct sandboxes *sandboxes)
{
    return sandboxes->registry;
}

struct held_reads *sandboxes_held_reads(struct sandboxes *sandboxes)
{
    return &sandboxes->held_reads;
}

struct live_outputs *sandboxes_live_outputs(struct sandboxes *sandboxes)
{
    return &sandboxes->live_outputs;
}

static void on_finish(void *ctx)
{
    struct sandboxes *sandboxes = ctx;

    if (sandboxes->ends == 0)
        sandboxes->done(sandboxes->done_ctx);
}

int sandboxes_new(struct adapter *adapter, struct sandboxes **ret_sandboxes)
{
    struct sandboxes *sandboxes = calloc(1, sizeof(*sandboxes));
    int result;

    if (!sandboxes)
        return -ENOMEM;
    sandboxes->adapter = adapter;
    held_reads_init(&sandboxes->held_reads);
    live_outputs_init(&sandboxes->live_outputs);
    loop_notice_init(&sandboxes->finish, on_finish, sandboxes);
    result = registry_new(adapter, &sandboxes->registry);
    if (result == 0)
        result = reaper_new(adapter, sandboxes->registry, &sandboxes->reaper);
    if (result < 0) {
        sandboxes_free(sandboxes);
        return result;
    }
    *ret_sandboxes = sandboxes;
    return 0;
}

void sandboxes_free(struct sandboxes *sandboxes)
{
    if (!sandboxes)
        return;
    loop_notice_cancel(adapter_loop(sandboxes->adapter), &sandboxes->finish);
    live_outputs_done(&sandboxes->live_outputs);
    reaper_free(sandboxes->reaper);
    registry_free(sandboxes->registry);
    free(sandboxes);
}

/* A machine that cannot be killed is left behind: waiting for it would be for ever. */
static void on_end(void *ctx, struct sandbox_error *err)
{
    struct end *end = ctx;
    struct sandboxes *sandboxes = end->sandboxes;

    free(end);
    sandboxes->ends--;
    loop_notify(adapter_loop(sandboxes->adapter), &sandboxes->finish);
}

static void end_sandbox(struct sandboxes *sandboxes, struct sandbox *sandbox)
{
    static const char why[] = "the adapter was shut down";
    struct end *end = calloc(1, sizeof(*end));

    if (!end) {
        sandbox_stop(sandbox, why, NULL);
        return;
    }
    end->sandboxes = sandboxes;
    stop_wait_init(&end->wait, on_end, end);
    end->wait.until_deleted = true;
    sandboxes->ends++;
    sandbox_stop(sandbox, why, &end->wait);
}

void sandboxes_end(struct sandboxes *sandboxes, const char *id, const char *why)
{
    struct sandbox_error err = { 0 };
    struct sandbox *sandbox;

    if (registry_find(sandboxes->registry, id, &sandbox, &err) == 0)
        sandbox_stop(sandbox, why, NULL);
    sandbox_error_done(&err); /* it has ended already */
}

void sandboxes_stop_all(struct sandboxes *sandboxes, void (*done)(void *ctx), void *ctx)
{
    struct sandbox *next;

    assert(!sandboxes->done);
    sandboxes->done = done;
    sandboxes->done_ctx = ctx;
    registry_shut(sandboxes->registry);
    for (struct sandbox *sandbox = registry_next(sandboxes->registry, NULL); sandbox;
         sandbox = next) {
        _cleanup_(sandbox_unrefp)
        struct sandbox *held = sandbox_ref(sandbox);

        next = registry_next(sandboxes->registry, sandbox);
        if (held->state == SANDBOX_CREATING && held->give_up)
            held->give_up(held->give_up_ctx, "the adapter was shut down");
        if (held->state != SANDBOX_GONE)
            end_sandbox(sandboxes, held);
    }
    loop_notify(adapter_loop(sandboxes->adapter), &sandboxes->finish);
}
