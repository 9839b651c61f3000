/* native_peer_state.h - what the files native_*.c share of a connection; nobody else includes
 * it.
 *
 * native_peer.c owns its life, native_hello.c its greeting and its time as an adapter,
 * native_caller.c its time as a caller. */
#pragma once

#include "backlog.h"
#include "front_native.h"
#include "native_stream.h"

enum peer_state {
    PEER_GREETING,
    PEER_CALLER,
    PEER_ADAPTER,
    PEER_RIVAL,
    PEER_CLOSING,
    PEER_STATE_MAX
};

struct native_peer {
    struct list node;
    struct front_native *front;
    struct link *link;
    enum peer_state state;
    bool remote; /* of another host */
    struct native_streams streams;

    struct caller caller;
    struct table *calls; /* the caller's id -> struct pending */
    struct backlog_member backlog;

    struct adapter *adapter;
    struct native_peer *rival;   /* of an adapter: who waits for its place */
    struct native_peer *holder;  /* of a rival: who has the place */
    struct buf hello;            /* of a rival */
    struct loop_timer *patience; /* of a rival */
};

/* native_peer.c */
void native_peer_set_state(struct native_peer *peer, enum peer_state state);
struct metrics_front_counters *native_peer_counters(const struct native_peer *peer);
/* What cannot be queued breaks the link. */
void native_peer_send(struct native_peer *peer, const struct envelope *envelope);
void native_peer_send_body(struct native_peer *peer, enum envelope_kind kind, uint64_t id,
                           struct span body);
void native_peer_send_whole(struct native_peer *peer, const uint8_t *data, size_t size);

static inline struct router *native_peer_router(const struct native_peer *peer)
{
    return peer->front->router;
}

/* native_caller.c */
void native_caller_begin(struct native_peer *peer);
void native_caller_message(struct native_peer *peer, const struct envelope *envelope);
/* The answer to a call of this peer, be it a caller or an adapter. */
void native_caller_send_answer(struct native_peer *peer, uint64_t id,
                               const struct answer *answer);
void native_caller_send_engine_error(struct native_peer *peer, uint64_t id, const char *code,
                                     const char *message);
extern const struct caller_events native_caller_events;

/* native_hello.c */
void native_hello_message(struct native_peer *peer, const struct envelope *hello,
                          const uint8_t *data, size_t size);
/* The peer of this link has shown life. */
void native_hello_alive(struct native_peer *holder);
void native_hello_adapter_lost(struct native_peer *peer, const char *reason);
/* The place that RIVAL waited for is free. */
void native_hello_rival_promote(struct native_peer *rival);
/* RIVAL waits no more. */
void native_hello_rival_part(struct native_peer *rival);
