/* route.h - the front door: a call by its name and the promise to answer it exactly once.
 *
 * A front turns bytes into a struct call and answers into bytes. Who answers is decided here
 * (contract 1 and 2.3): `sandbox::adapter::info` and `engine::channels::create` by the router,
 * `sandbox::<op>` and `<adapter>::<op>` by an adapter. Other names are "not found"; what else a
 * front serves by itself (`engine::functions::list`, …) it takes before it calls route_call().
 *
 * Engine error codes (function_not_found, …) belong to the front; route tells the kind. All of
 * it runs on the loop's thread. */
#pragma once

#include "envelope.h"
#include "list.h"

struct router;  /* router.h */
struct pending; /* a call under way; passthrough.h */

enum answer_kind {
    ANSWER_REPLY, /* body: the reply's JSON, byte for byte as the adapter wrote it */
    ANSWER_ERROR, /* body: the error envelope (contract 3.1), of the adapter or the router */
    ANSWER_NOT_FOUND, /* no such function; message names it */
    ANSWER_EXPIRED,   /* the call's own deadline passed; the adapter has been told */
    ANSWER_FAILED,    /* the router cannot carry it (too large, no memory); message says why */
    ANSWER_KIND_MAX
};

struct answer {
    enum answer_kind kind;
    struct span body;    /* REPLY, ERROR: JSON */
    const char *message; /* NOT_FOUND, EXPIRED, FAILED: valid UTF-8 for people */
    /* The adapter's whole message (REPLY, ERROR), or NULL when the router made the answer: a
     * front with the same framing rewrites the id in place and sends it on. */
    uint8_t *envelope;
    size_t envelope_size;
};

/* Everything is borrowed for the call. A callback may cancel other calls, make new ones, and
 * end its own caller. */
struct caller_events {
    /* Exactly once for each call that is neither cancelled nor detached. The struct pending is
     * gone by then. */
    void (*answer)(void *ctx, uint64_t tag, const struct answer *answer);
    /* Progress of a call that wants events: one JSON object. Never after its answer. */
    void (*event)(void *ctx, uint64_t tag, struct span body);
};

/* One client of a front; a member of the front's own connection. */
struct caller {
    const struct caller_events *events;
    void *ctx;
    struct list calls; /* of struct pending */
    /* Their number, cancelled ones included until the adapter has answered, detached ones left
     * out. The front caps it. */
    unsigned in_flight;
};

/* All spans are borrowed for route_call(). */
struct call {
    struct span function;    /* "sandbox::fs::ls" */
    struct span body;        /* JSON text, passed on as it is; absent or empty counts as {} */
    uint64_t deadline_ms;    /* from now, or ENVELOPE_NO_DEADLINE */
    struct span traceparent; /* passed on; absent: data is NULL */
    uint64_t tag;            /* the front's own name of the call, comes back with its answer */
    bool wants_events;
    /* Nobody waits: no answer, no event, and the end of the caller does not cancel it. */
    bool detached;
};

void caller_init(struct caller *caller, const struct caller_events *events, void *ctx);

/* Begins the call. Where the answer is known at once (S301-S303, not found, …) the callback
 * runs before this returns, and the result is NULL; so it is for a detached call. Otherwise the
 * result is valid until the answer's callback, route_cancel() or route_caller_gone(). */
struct pending *route_call(struct router *router, struct caller *caller,
                           const struct call *call);

/* Nobody waits any more: no callback follows, the adapter is told (contract 2.4). */
void route_cancel(struct pending *pending);

/* The client left: cancels all its calls but the detached ones, which lose their caller. */
void route_caller_gone(struct caller *caller);

/* Largest body that fits in a message to the adapter; route_call() answers FAILED beyond it. */
size_t route_max_body_bytes(const struct router *router);

/* "none", "waiting", "mismatch" or "bound" (contract 13). */
const char *route_status(const struct router *router);
