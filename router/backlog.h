/* backlog.h - what waits to be sent to clients: a cap for each connection and one for all.
 *
 * A connection over BACKLOG_CONNECTION_BYTES reads nothing more until its queue is half that;
 * one whose queue does not shrink for BACKLOG_STALL_MS meanwhile is dropped. When all queues
 * together pass BACKLOG_TOTAL_BYTES the fullest is dropped. Nothing is done inside
 * backlog_grew(): pause, resume and drop come from the loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"
#include "loop.h"
#include "router_limits.h"

struct backlog {
    struct loop *loop;
    struct list members;
    size_t total_bytes; /* as last told; never too low */
    struct loop_timer *tick;
    struct loop_notice check;
};

struct backlog_ops {
    size_t (*queued_bytes)(void *ctx);
    void (*pause)(void *ctx); /* read nothing more from the client */
    void (*resume)(void *ctx);
    /* Close it. The member leaves in here or later. */
    void (*drop)(void *ctx, const char *reason);
};

/* A member of the connection. */
struct backlog_member {
    struct list node;
    struct backlog *backlog;
    const struct backlog_ops *ops;
    void *ctx;
    size_t bytes; /* as last told */
    bool over;    /* paused by us */
    uint64_t moved_ms;
};

int backlog_init(struct backlog *backlog, struct loop *loop); /* 0 or -errno */
void backlog_done(struct backlog *backlog);

void backlog_join(struct backlog *backlog, struct backlog_member *member,
                  const struct backlog_ops *ops, void *ctx);
void backlog_leave(struct backlog_member *member); /* twice is fine */
/* After each send. */
void backlog_grew(struct backlog_member *member);
