/* shutdown.h - the order in which the router ends.
 *
 * States: draining (no new calls; those in flight get SHUTDOWN_GRACE_MS, the rest S301) ->
 * flushing (what is queued goes out, connections close) -> stopping (managed adapters end) ->
 * done (the loop stops with 0). */
#pragma once

#include "front_native.h"
#include "front_web.h"
#include "supervise.h"

enum shutdown_state {
    SHUTDOWN_NONE,     /* serving */
    SHUTDOWN_DRAINING, /* leaves when no call is open, or when the time is over */
    SHUTDOWN_FLUSHING, /* leaves when the fronts have closed */
    SHUTDOWN_STOPPING, /* leaves when no managed adapter is left */
    SHUTDOWN_DONE,
    SHUTDOWN_STATE_MAX
};

struct shutdown {
    struct router *router;
    struct front_native *native;
    struct front_web *web;
    struct supervise *supervise;
    enum shutdown_state state;
    uint32_t grace_ms;       /* SHUTDOWN_GRACE_MS; a test sets another */
    unsigned closing_fronts; /* in flushing: how many have not closed yet */
    struct loop_timer *timer;
    struct loop_notice step; /* deferred: what the state waited for has happened */
};

/* All are borrowed for its life. 0 or -errno. */
int shutdown_init(struct shutdown *shutdown, struct router *router, struct front_native *native,
                  struct front_web *web, struct supervise *supervise);
void shutdown_done(struct shutdown *shutdown);

/* The first call begins it, a second one ends the loop at once, with 1. */
void shutdown_begin(struct shutdown *shutdown);
