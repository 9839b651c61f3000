/* supervise.h - the processes of managed adapters: started, restarted, stopped after a swap.
 *
 * It knows names and processes; whether one is connected is the binding's business. An adapter
 * dies with the router; its sandboxes are its own to recover (contract 2.4). */
#pragma once

#include "router.h"

struct supervise;

/* Injected, so that a test need not wait. Zero: the limit of router_limits.h. */
struct supervise_timing {
    uint32_t backoff_min_ms;
    uint32_t backoff_max_ms;
    uint32_t stop_ms;
};

/* URL is what adapters dial; borrowed. Nothing is started before supervise_apply(). */
int supervise_new(struct router *router, const char *url, const struct supervise_timing *timing,
                  struct supervise **ret_supervise);
/* After the start and after each reload: makes the processes be what the settings want. */
void supervise_apply(struct supervise *supervise);
/* Ends all; DONE once, never from inside this call. Nothing is started any more. */
void supervise_stop(struct supervise *supervise, void (*done)(void *ctx), void *ctx);
/* Kills what is left. */
void supervise_free(struct supervise *supervise);
DEFINE_CLEANUP(struct supervise *, supervise_free)
