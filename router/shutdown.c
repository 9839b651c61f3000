/* shutdown.c - see shutdown.h. */
#include "shutdown.h"

#include <assert.h>

#include "log.h"
#include "router_limits.h"

static const char *const state_texts[] = {
    [SHUTDOWN_NONE] = "none",         [SHUTDOWN_DRAINING] = "draining",
    [SHUTDOWN_FLUSHING] = "flushing", [SHUTDOWN_STOPPING] = "stopping",
    [SHUTDOWN_DONE] = "done",
};
static_assert(ARRAY_SIZE(state_texts) == SHUTDOWN_STATE_MAX, "a text for each state");

/* One way only, one step at a time. */
static void shutdown_set_state(struct shutdown *shutdown, enum shutdown_state state)
{
    assert(state == shutdown->state + 1);
    log_event(LOG_INFO, "shutdown", log_text("from", state_texts[shutdown->state]),
              log_text("to", state_texts[state]),
              log_uint("calls", shutdown->router->passthrough.open));
    shutdown->state = state;
}

/* What a state waits for may happen inside anybody's callback: the step is made later. */
static void on_reached(void *ctx)
{
    struct shutdown *shutdown = ctx;

    loop_defer(shutdown->router->loop, &shutdown->step);
}

static void on_front_closed(void *ctx)
{
    struct shutdown *shutdown = ctx;

    shutdown->closing_fronts--;
    if (shutdown->closing_fronts == 0)
        on_reached(shutdown);
}

static void shutdown_flush(struct shutdown *shutdown)
{
    shutdown->router->passthrough.idle = NULL;
    passthrough_give_up(&shutdown->router->passthrough);
    shutdown_set_state(shutdown, SHUTDOWN_FLUSHING);
    shutdown->closing_fronts = 2;
    shutdown->native->closed = on_front_closed;
    shutdown->native->closed_ctx = shutdown;
    front_native_close(shutdown->native, SHUTDOWN_LINGER_MS);
    front_web_stop(shutdown->web, on_front_closed, shutdown);
}

static void shutdown_stop(struct shutdown *shutdown)
{
    shutdown_set_state(shutdown, SHUTDOWN_STOPPING);
    supervise_stop(shutdown->supervise, on_reached, shutdown);
}

static void on_step(void *ctx)
{
    struct shutdown *shutdown = ctx;

    loop_timer_disarm(shutdown->timer);
    switch (shutdown->state) {
    case SHUTDOWN_DRAINING:
        shutdown_flush(shutdown);
        break;
    case SHUTDOWN_FLUSHING:
        shutdown_stop(shutdown);
        break;
    case SHUTDOWN_STOPPING:
        shutdown_set_state(shutdown, SHUTDOWN_DONE);
        loop_stop(shutdown->router->loop, 0);
        break;
    default:
        break;
    }
}

void shutdown_begin(struct shutdown *shutdown)
{
    if (shutdown->state != SHUTDOWN_NONE) {
        log_event(LOG_WARN, "shutdown_now", log_text("state", state_texts[shutdown->state]));
        loop_stop(shutdown->router->loop, 1);
        return;
    }
    shutdown_set_state(shutdown, SHUTDOWN_DRAINING);
    shutdown->router->draining = true;
    front_native_stop_listening(shutdown->native);
    front_web_stop_listening(shutdown->web);
    shutdown->router->passthrough.idle = on_reached;
    shutdown->router->passthrough.idle_ctx = shutdown;
    if (shutdown->router->passthrough.open == 0)
        on_reached(shutdown);
    else
        loop_timer_arm(shutdown->timer, shutdown->grace_ms);
}

int shutdown_init(struct shutdown *shutdown, struct router *router, struct front_native *native,
                  struct front_web *web, struct supervise *supervise)
{
    *shutdown = (struct shutdown){
        .router = router,
        .native = native,
        .web = web,
        .supervise = supervise,
        .state = SHUTDOWN_NONE,
        .grace_ms = SHUTDOWN_GRACE_MS,
    };
    loop_notice_init(&shutdown->step, on_step, shutdown);
    return loop_timer_new(router->loop, on_step, shutdown, &shutdown->timer);
}

void shutdown_done(struct shutdown *shutdown)
{
    if (!shutdown->router)
        return;
    if (shutdown->router->passthrough.idle_ctx == shutdown)
        shutdown->router->passthrough.idle = NULL;
    loop_timer_free(shutdown->timer);
    loop_notice_cancel(shutdown->router->loop, &shutdown->step);
}
