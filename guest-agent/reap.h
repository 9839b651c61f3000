/* reap.h - the one place that waits for children.
 *
 * As pid 1 (or as subreaper) the agent inherits every orphan of the sandbox. One reaper takes
 * them all and hands the status of those that somebody watches to him, so that reaping an
 * orphan never steals an exit code. Loop's thread only; a child is started and watched in the
 * same callback, so its end cannot be missed. */
#pragma once

#include <sys/types.h>

#include "list.h"
#include "loop.h"
#include "table.h"

struct reaper {
    struct loop_signal *signal;
    struct table *watches; /* pid -> struct reap_watch */
};

/* Lives in its owner. */
struct reap_watch {
    pid_t pid; /* 0: not watching */
    void (*ended)(void *ctx, int wait_status);
    void *ctx;
};

int reaper_init(struct reaper *reaper, struct loop *loop); /* 0 or -errno */
void reaper_done(struct reaper *reaper);

/* Fills WATCH; `ended` comes once. 0 or -errno. */
int reaper_watch(struct reaper *reaper, pid_t pid, void (*ended)(void *ctx, int wait_status),
                 void *ctx, struct reap_watch *watch);
/* No callback follows; the child is still reaped. */
void reaper_forget(struct reaper *reaper, struct reap_watch *watch);
