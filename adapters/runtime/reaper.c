/* reaper.c - see reaper.h. Looking at a sandbox and moving it to stopping happen in one
 * callback of the loop, so nothing can come between. */
#include "reaper.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "idle.h"
#include "log.h"
#include "stop.h"

struct reaper {
    struct adapter *adapter;
    struct registry *registry;
    struct loop_timer *timer;
    uint64_t due_ms; /* of the next tick */
};

static bool in_service(const struct sandbox *sandbox)
{
    return sandbox_state(sandbox) == SANDBOX_READY ||
           sandbox_state(sandbox) == SANDBOX_UNREACHABLE;
}

static void reap_if_idle(struct sandbox *sandbox, uint64_t max_exec_timeout_ms)
{
    uint64_t idle = sandbox_idle_secs(sandbox);
    uint64_t limit = idle_limit_secs(sandbox_spec(sandbox)->idle_timeout_secs,
                                     sandbox_execs(sandbox), max_exec_timeout_ms);
    char why[SANDBOX_WHY_MAX];

    if (!idle_is_over(idle, limit))
        return;
    (void)snprintf(why, sizeof(why),
                   "it was idle for %" PRIu64 " s, longer than its limit of %" PRIu64
                   " s, and was reaped",
                   idle, limit);
    sandbox_stop(sandbox, why, NULL);
}

void reaper_tick(struct reaper *reaper)
{
    uint64_t max_exec_timeout_ms = adapter_settings(reaper->adapter)->max_exec_timeout_ms;
    struct sandbox *next;

    for (struct sandbox *sandbox = registry_next(reaper->registry, NULL); sandbox;
         sandbox = next) {
        next = registry_next(reaper->registry, sandbox);
        if (in_service(sandbox))
            reap_if_idle(sandbox, max_exec_timeout_ms);
    }
}

static void reaper_arm(struct reaper *reaper)
{
    reaper->due_ms = loop_now_ms(adapter_loop(reaper->adapter)) + REAPER_TICK_MS;
    loop_timer_arm(reaper->timer, REAPER_TICK_MS);
}

/* A tick far behind its time means that this process or its machine stood still: calls and
 * payload of that while are still under way, and are looked at until the next tick. */
static void on_timer(void *ctx)
{
    struct reaper *reaper = ctx;
    uint64_t late_ms = loop_now_ms(adapter_loop(reaper->adapter)) - reaper->due_ms;

    reaper_arm(reaper);
    if (late_ms < REAPER_LATE_MS)
        reaper_tick(reaper);
    else
        log_event(LOG_WARN, "tick_left_out", log_uint("late_ms", late_ms));
}

int reaper_new(struct adapter *adapter, struct registry *registry, struct reaper **ret_reaper)
{
    struct reaper *reaper = calloc(1, sizeof(*reaper));
    int result;

    if (!reaper)
        return -ENOMEM;
    reaper->adapter = adapter;
    reaper->registry = registry;
    result = loop_timer_new(adapter_loop(adapter), on_timer, reaper, &reaper->timer);
    if (result < 0) {
        reaper_free(reaper);
        return result;
    }
    reaper_arm(reaper);
    *ret_reaper = reaper;
    return 0;
}

void reaper_free(struct reaper *reaper)
{
    if (!reaper)
        return;
    loop_timer_free(reaper->timer);
    free(reaper);
}
