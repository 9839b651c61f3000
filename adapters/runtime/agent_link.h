/* agent_link.h - the host's end of the guest agent's channel (docs/agent-protocol.md).
 *
 * Everything that comes is hostile: kinds, ids, sizes and credit are checked; any breach ends
 * the link with a reason. Memory is bounded by one frame, the windows and the limits below.
 * Frames that are sent in one turn of the loop leave in one write. */
#pragma once

#include "error.h"
#include "loop.h"
#include "tables.h"

struct agent_link;
struct agent_call;

#define AGENT_LINK_PROTOCOL_MAJOR 1u /* what the guest's HELLO must say */
#define AGENT_LINK_PING_MS 5000u     /* nothing heard for so long: PING */
#define AGENT_LINK_SILENCES_MAX 3u   /* after so many of these spans: silent (keep_alive.h) */
/* Calls that the guest has not ended; abandoned ones count. More: the call is refused. */
#define AGENT_LINK_CALLS_MAX 4096u
/* What may wait to be sent before further calls are refused, and before streams are held back.
 */
#define AGENT_LINK_QUEUE_MAX_BYTES (64u * 1024 * 1024)
#define AGENT_LINK_STREAM_QUEUE_BYTES (2u * 1024 * 1024)

/* States, moved by agent_link.c alone:
 *   greeting     HELLO is awaited, nothing may be sent
 *   greeted      agent_link_configure() is awaited
 *   configuring  READY is awaited
 *   ready        calls are served
 *   silent       as ready, but the guest does not answer; all calls it had have failed
 *   closed       the socket is gone; no call can begin */
struct agent_link_events {
    void (*greeted)(void *ctx, const struct guest_hello *hello);
    void (*ready)(void *ctx);
    /* The answer to agent_link_settle(). */
    void (*settled)(void *ctx);
    /* No frame for 15 s although PINGs were sent, or agent_call_give_up(); the calls in flight
     * fail right after. Then `awake` when a frame comes and no given-up call is left. */
    void (*silent)(void *ctx);
    void (*awake)(void *ctx);
    /* Once, last: all calls have failed before. Not after agent_link_free(). */
    void (*closed)(void *ctx, const char *reason);
};

/* Consumes OWN_FD, also on failure. EVENTS is borrowed for the link's life. 0 or -errno. */
int agent_link_new(struct loop *loop, int own_fd, const struct agent_link_events *events,
                   void *ctx, struct agent_link **ret_link);
/* The memory of the guest's disk for bulk (consumed; -1: none), before it is configured. It is
 * used if the guest has such a disk. */
void agent_link_set_mailbox(struct agent_link *link, int own_fd);
/* Once, in state greeted. Whether there is a mailbox is filled in here. */
void agent_link_configure(struct agent_link *link, const struct guest_configure *configure);
/* From ready on: the guest does at once what it has put off since READY. Once. */
void agent_link_settle(struct agent_link *link);
/* Ends all calls in flight as lost, from inside this call; the link goes on. */
void agent_link_fail_calls(struct agent_link *link, const char *reason);
/* Also from a callback of the link or of a call. Calls that are left fail first. */
void agent_link_free(struct agent_link *link);
DEFINE_CLEANUP(struct agent_link *, agent_link_free)

/* All callbacks are optional but `ended`; none runs from inside agent_call(). */
struct agent_call_events {
    /* fs::read: struct guest_fs_read_head; exec with `announce`, once the program runs: empty.
     */
    void (*head)(void *ctx, const void *head);
    /* The window is given back by agent_call_grant(). */
    void (*data)(void *ctx, unsigned stream, const uint8_t *data, size_t size);
    void (*end)(void *ctx, unsigned stream, const char *abort_reason); /* NULL: clean */
    /* The window opened after agent_call_write() took less than it was given. */
    void (*writable)(void *ctx, unsigned stream);
    /* Once, last: the call is gone. Exactly one of REPLY (struct of the operation's reply type)
     * and ERR is not NULL; both are borrowed, ERR may be moved. LOST: no answer of the guest,
     * but link or guest failed (ERR is S300 then, without an outcome); the operation maps it.
     */
    void (*ended)(void *ctx, const void *reply, struct sandbox_error *err, bool lost);
};

/* Begins a call in state ready or silent. -1 (S300): closed, or a limit of above is reached.
 * EVENTS is borrowed for the call's life, REQUEST for this call. */
int agent_call(struct agent_link *link, enum guest_operation_id operation, const void *request,
               const struct agent_call_events *events, void *ctx, struct agent_call **ret_call,
               struct sandbox_error *err);
uint64_t agent_call_id(const struct agent_call *call); /* as the guest knows it */
size_t agent_call_window(const struct agent_call *call, unsigned stream);
/* Takes at most the window; returns how many bytes it took. */
size_t agent_call_write(struct agent_call *call, unsigned stream, const uint8_t *data,
                        size_t size);
void agent_call_end(struct agent_call *call, unsigned stream, const char *abort_reason);
void agent_call_grant(struct agent_call *call, unsigned stream, size_t size);
void agent_call_cancel(struct agent_call *call); /* `ended` still comes */
/* Forgets the call: cancels it in the guest, no callback follows. */
void agent_call_abandon(struct agent_call *call);
/* The same for a call whose cancellation the guest owes an answer to for too long: the link is
 * silent until that answer has come. */
void agent_call_give_up(struct agent_call *call);
