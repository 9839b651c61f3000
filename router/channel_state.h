/* channel_state.h - what channel.c and channel_flow.c share; nobody else includes it.
 *
 * channel.c owns a channel's life, its ends and its times; channel_flow.c moves the bytes. */
#pragma once

#include "channel.h"
#include "table.h"

struct message {
    struct list node;
    bool is_text;
    size_t size;
    size_t capacity;
    size_t taken; /* bytes the reader has */
    uint8_t data[];
};

struct channel_end {
    struct channel *channel;
    bool taken;    /* somebody attached, ever */
    bool attached; /* and is there */
    bool windowed;
    bool whole_messages;
    const struct channel_events *events;
    void *ctx;
};

enum channel_state {
    CHANNEL_OPEN,  /* the writer may send, or may still come */
    CHANNEL_ENDED, /* clean end: the reader gets what is held, then its end */
    CHANNEL_GONE,  /* unknown to all; memory waits for our callbacks on the stack */
};

struct channel {
    struct list node;
    struct channel_set *set;
    struct channel_refs refs;
    enum channel_state state;
    struct channel_end reader;
    struct channel_end writer;

    struct list messages;
    size_t message_count;
    size_t held_bytes;
    uint32_t buffer;   /* in messages */
    uint64_t credit;   /* the reader may be given so much */
    uint64_t window;   /* a windowed writer may send so much */
    bool writer_waits; /* another one was told to pause */
    uint64_t created_ms;
    uint64_t moved_ms; /* a held byte moved, or began to wait */
    struct loop_timer *timer;
    struct loop_notice work; /* deferred: opens the window once both ends are there */
    unsigned calls;          /* callbacks of ours on the stack */
    bool pumping;
};

struct channel_set {
    struct loop *loop;
    struct table *by_id;
    struct list channels;
    size_t count;
    size_t held_bytes;
    uint32_t untaken_ms;
    uint32_t stall_ms;
};

/* channel.c */
/* Tells both ends that are still attached; then the channel is gone. */
void channel_close(struct channel *channel, enum channel_close close, struct span code,
                   struct span message);
/* Frees what is gone, when no callback of ours is on the stack any more. */
void channel_release(struct channel *channel);
/* Arms the timer for whatever is due next. */
void channel_watch(struct channel *channel);
/* A held byte moved, or began to wait. */
void channel_moved(struct channel *channel);

/* channel_flow.c */
/* Gives the reader what it may have, the writer what that made free, and the reader its end. */
void channel_pump(struct channel *channel);
/* The writer may have a window, or go on. */
void channel_refill_writer(struct channel *channel);
void channel_drop_messages(struct channel *channel);
