/* link.h - the agent's end of the channel to the host: a descriptor as a flow of frames.
 *
 * Owns the descriptor, the bytes of the frame that is coming and the queue of bytes to go. What
 * frames mean is left to serve.c. The channel is made once; when it ends, so does the sandbox.
 * All of it belongs to the loop's thread. */
#pragma once

#include "agent_frame.h"
#include "loop.h"

struct link;

struct link_events {
    /* FRAME and its spans are borrowed for the call. -EPROTO: it may not come now, the channel
     * is to be closed. */
    int (*frame)(void *ctx, const struct agent_frame *frame);
    /* The queue is empty again after link_full() was true. */
    void (*drained)(void *ctx);
    /* The end, once, last. REASON is a static text. */
    void (*closed)(void *ctx, const char *reason);
};

/* The flow of frames pauses its producers at LINK_FULL_BYTES. Nothing may pass the maximum: a
 * host that does not read has broken the protocol. */
#define LINK_FULL_BYTES (1u * 1024 * 1024)
#define LINK_QUEUE_MAX_BYTES (128u * 1024 * 1024)

/* Consumes the descriptor, also on failure; makes it non-blocking. EVENTS is borrowed for the
 * link's life. 0 or -errno. */
int link_new(struct loop *loop, int own_fd, const struct link_events *events, void *ctx,
             struct link **ret_link);

/* Where frames are appended; what is there when the turn ends goes out in one write. */
struct buf *link_queue(struct link *link);
/* All of FRAMES, which is empty afterwards: its memory is exchanged when nothing else waits. 0,
 * -ENOMEM, -ENOBUFS. */
int link_append(struct link *link, struct buf *frames);
void link_flush(struct link *link); /* to be called after appending */
/* True: pause, `drained` will come. */
bool link_full(struct link *link);

/* Writes what is queued and waits for it, at most TIMEOUT_MS: for the last words before the
 * end. */
void link_finish(struct link *link, int timeout_ms);

void link_free(struct link *link);
DEFINE_CLEANUP(struct link *, link_free)
