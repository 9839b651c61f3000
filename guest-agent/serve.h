/* serve.h - the conversation with the host: HELLO, CONFIGURE, READY, then calls
 * (docs/agent-protocol.md).
 *
 * Owns the link and the table of calls that are going on; each call owns itself and is an exec
 * (exec.c) or a file operation (job.c). Loop's thread only. */
#pragma once

#include "codec.h"
#include "link.h"
#include "mailbox.h"
#include "tree.h"
#include "work.h"

#define AGENT_PROTOCOL_MAJOR 1u
#define AGENT_PROTOCOL_MINOR 4u
#define SERVE_CALLS_MAX 1024u /* at once; more are refused by name */

/* What a call does with the frames of its streams. All but cancel and resume: 0, or -EPROTO
 * when the host broke the rules of the streams. */
struct call;
struct call_ops {
    int (*data)(struct call *call, unsigned stream, struct span bytes);
    /* The same: SIZE bytes are in SLOT of the mailbox. Another -errno: they cannot be read. */
    int (*slot)(struct call *call, unsigned stream, unsigned slot, size_t size);
    int (*end)(struct call *call, unsigned stream, struct span reason);
    int (*credit)(struct call *call, unsigned stream, uint64_t size);
    void (*cancel)(struct call *call);
    void (*resume)(struct call *call); /* the link has room again */
};

/* The part of a call that serve.c sees. */
struct call {
    struct list node;
    uint64_t id;
    const struct call_ops *ops;
    struct serve *serve;
};

/* States of the conversation:
 *   greeting  HELLO is queued; CONFIGURE is awaited, nothing else may come but PING
 *   rehearsing  as ready, but of nobody: another CONFIGURE may come, also another rehearsal
 *   ready     READY was sent; calls are served
 *   over      the channel ended; the loop is being stopped */
enum serve_state { SERVE_GREETING, SERVE_REHEARSING, SERVE_READY, SERVE_OVER, SERVE_STATE_MAX };

struct serve {
    enum serve_state state;
    struct loop *loop;
    struct link *link;
    struct mailbox mailbox;
    struct trees *trees;
    struct work work;
    struct table *calls;    /* id -> struct call */
    struct list list;       /* of the same calls */
    int null_fd;            /* /dev/null, the standard input of execs that have none */
    struct exec *next_exec; /* waits for its request (exec.c); NULL: none does */
    struct text_list environment;
    unsigned large_blocks; /* jobs that have such (job.c) */
    char *workdir;
    bool owes; /* `configure`, which came at `configured_ns` (CLOCK_MONOTONIC), is not done yet
                */
    struct guest_configure configure; /* owned */
    int64_t configured_ns;
    bool machine; /* we are a machine's init: set clock, names and network, power off at the end
                   */
};

/* What a machine finds of its own, or is given: both consumed. */
struct serve_fds {
    int channel;
    int mailbox; /* -1: none */
};

/* Consumes the descriptors, also on failure; HELLO goes out with the first turn of the loop.
 * TREES is borrowed. When the conversation is over the loop is stopped: 0 in order, 1 broken. 0
 * or -errno. */
int serve_init(struct serve *serve, struct loop *loop, struct serve_fds own_fds,
               struct trees *trees, bool machine);

/* Registers a new call. The two ways to end it are below. */
void serve_begin(struct serve *serve, struct call *call, uint64_t id,
                 const struct call_ops *ops);
/* Its last frame is queued; the call is unknown from now on. */
void serve_end(struct serve *serve, struct call *call);

/* Frames go to the link's queue and out when the turn ends. */
struct buf *serve_queue(struct serve *serve);
/* All of FRAMES (without a limit), which are empty afterwards; 0, -ENOMEM, -ENOBUFS. */
int serve_append(struct serve *serve, struct buf *frames);
/* Slots of the host that were emptied are told, when it is worth it, or along with what is
 * queued (FORCE). */
void serve_return_slots(struct serve *serve, bool force);
bool serve_full(struct serve *serve); /* pause; `resume` will come */
/* What is queued goes out now, as far as the port takes it: the sender has something to do that
 * the host need not wait for. */
void serve_send(struct serve *serve);
/* Takes the result of having appended frames: sends them, or ends the conversation. */
void serve_queued(struct serve *serve, int result);
