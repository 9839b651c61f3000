/* passthrough.h - calls that wait for an adapter: forwarded once, answered once.
 *
 * Each has a slot; the id towards the adapter is the slot and the generation of its use, so
 * that the answer finds it without a search and a late one finds nothing. Bodies are never
 * looked at.
 *
 * States of a pending call:
 *   free       in the free list
 *   forwarded  the caller waits
 *   detached   nobody waits and nothing was cancelled: a call without answer
 *   tombstone  nobody waits, the adapter was told and still answers once
 * Every state but free ends with the adapter's answer or its loss. */
#pragma once

#include "adapter.h"
#include "route.h"

enum pending_state {
    PENDING_FREE,
    PENDING_FORWARDED,
    PENDING_DETACHED,
    PENDING_TOMBSTONE,
    PENDING_STATE_MAX
};

/* Makes the caller's answer out of the adapter's; TO holds what it writes. */
typedef void (*answer_filter_fn)(struct router *router, const struct answer *answer,
                                 struct buf *to, struct answer *ret_answer);

struct pending {
    struct list of_adapter;
    struct list of_caller; /* while there is a caller; or the free list */
    enum pending_state state;
    struct router *router;
    struct adapter *adapter;
    struct caller *caller; /* FORWARDED, and TOMBSTONE while it is there; else NULL */
    uint64_t tag;
    uint64_t started_us;
    answer_filter_fn filter;     /* or NULL */
    struct loop_timer *deadline; /* kept from use to use; NULL: never needed */
    uint32_t slot;
    uint32_t generation;
    uint16_t metrics_op;
    bool side_effects;
    bool wants_events;
};

struct passthrough {
    struct router *router;
    struct pending **slots;
    uint32_t slot_count;
    uint32_t slot_capacity;
    struct list free;
    unsigned in_use;    /* not FREE */
    unsigned open;      /* FORWARDED or DETACHED */
    struct buf scratch; /* the message that is being forwarded */
    /* The last open call has ended; may be NULL. memory.c's, then the shutdown's. */
    void (*idle)(void *ctx);
    void *idle_ctx;
};

struct forward {
    struct adapter *adapter; /* connected */
    struct span operation;   /* without a namespace */
    const struct call *call;
    uint64_t deadline_ms; /* from now, or ENVELOPE_NO_DEADLINE */
    answer_filter_fn filter;
    unsigned metrics_op;
    bool side_effects;
};

void passthrough_init(struct passthrough *passthrough, struct router *router);
/* All adapters are gone. */
void passthrough_done(struct passthrough *passthrough);

/* As route_call(). */
struct pending *passthrough_forward(struct passthrough *passthrough, struct caller *caller,
                                    const struct forward *forward);
/* A REPLY, ERROR or EVENT of ADAPTER. One that fits no call of it is dropped. */
void passthrough_message(struct passthrough *passthrough, struct adapter *adapter,
                         const struct envelope *envelope, uint8_t *data, size_t size);
/* ADAPTER was detached: its calls end with S301 now, tombstones without a word. */
void passthrough_adapter_lost(struct passthrough *passthrough, struct adapter *adapter);
/* Shutdown: what is still waited for ends with S301, and the adapters are told to cancel. */
void passthrough_give_up(struct passthrough *passthrough);

void pending_cancel(struct pending *pending); /* route_cancel() */
/* Its caller is gone: cancelled if need be, and no more of that caller. */
void pending_abandon(struct pending *pending);
