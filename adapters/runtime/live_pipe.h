/* live_pipe.h - one outgoing channel of a streamed program (docs/live-output.md): what was
 * written waits here until the reader takes it. Lives in its owner.
 *
 * Bytes are given back to the producer when the reader has taken them, so a slow reader slows
 * the program; when nobody can read them any more they are given back at once. */
#pragma once

#include "channel.h"

struct live_pipe;

struct live_pipe_events {
    /* The channel is there (ERR NULL), or could not be made. Once. */
    void (*made)(void *ctx, struct live_pipe *pipe, struct sandbox_error *err);
    /* SIZE bytes left the pipe. */
    void (*moved)(void *ctx, struct live_pipe *pipe, size_t size);
    /* Once, last: all was read, or nobody reads it any more. LEFT: a reader had come and went.
     * The owner may free the pipe. */
    void (*over)(void *ctx, struct live_pipe *pipe, bool left);
};

enum live_pipe_state {
    LIVE_PIPE_MAKING,  /* the router makes the channel */
    LIVE_PIPE_WAITING, /* for a reader */
    LIVE_PIPE_FLOWING, /* the reader has come */
    LIVE_PIPE_OVER,    /* what comes is thrown away */
    LIVE_PIPE_STATE_MAX
};

struct live_pipe {
    const struct live_pipe_events *events;
    void *ctx;
    enum live_pipe_state state;
    struct channel *channel;
    char *channel_id, *access_key; /* of the reader */
    struct buf held;
    bool at_end; /* nothing more comes */
};

/* EVENTS is borrowed. -1: `made` does not come. */
int live_pipe_init(struct live_pipe *pipe, struct adapter *adapter,
                   const struct live_pipe_events *events, void *ctx, struct sandbox_error *err);
/* An abort, unless it is over; no callback follows. */
void live_pipe_done(struct live_pipe *pipe);
struct channel_ref live_pipe_ref(const struct live_pipe *pipe); /* borrowed */

/* Each may end in `over`. */
void live_pipe_add(struct live_pipe *pipe, const void *data, size_t size);
void live_pipe_end(struct live_pipe *pipe);
void live_pipe_abort(struct live_pipe *pipe, const char *reason);
