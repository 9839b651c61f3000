/* sandbox_state.h - what the files that move a sandbox share: sandbox.c, registry.c, create.c,
 * boot.c, stop.c; nobody else includes it. */
#pragma once

#include "adapter.h"
#include "registry.h"
#include "sandbox.h"
#include "stop.h"

struct boot; /* boot.c */

struct sandbox {
    struct adapter *adapter;
    struct registry *registry;
    unsigned references; /* the registry's own included */
    enum sandbox_state state;
    char id[UUID_TEXT_BYTES];
    struct sandbox_spec spec; /* texts are owned */
    int64_t created_at;
    struct list node; /* registry, oldest first */

    uint64_t active_ms; /* idle clock, on the loop's clock */
    uint32_t execs;

    const struct image *image; /* one reference, for the machine's life */
    struct machine *machine;   /* from machine_start() to machine_free() */
    struct agent_link *link;   /* from the machine's AGENT to its end or the link's */
    struct boot *boot;         /* while the machine boots */

    /* While creating: gives the creation up, as a failure. */
    void (*give_up)(void *ctx, const char *why);
    void *give_up_ctx;

    struct stop stop;
    char why[SANDBOX_WHY_MAX]; /* why it is ending or has ended; "" otherwise */

    struct list waits;   /* struct sandbox_wait, while creating */
    struct list watches; /* struct sandbox_watch */
};

/* NULL: no memory or no randomness. One reference, the caller's. */
struct sandbox *sandbox_new(struct adapter *adapter, struct registry *registry,
                            const struct sandbox_spec *spec);
void sandbox_set_state(struct sandbox *sandbox, enum sandbox_state state);
/* Creating is over: tells those who wait. */
void sandbox_settle_waits(struct sandbox *sandbox);
void sandbox_tell_watches(struct sandbox *sandbox);
/* Something is about to be said to its guest. */
void sandbox_want(struct sandbox *sandbox);
