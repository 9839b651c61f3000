/* agent_link_state.h - what agent_link.c (socket, greeting, keep-alive) and agent_call.c (calls
 * and their streams) share; nobody else includes it. */
#pragma once

#include "agent_frame.h"
#include "agent_link.h"
#include "keep_alive.h"
#include "list.h"
#include "mailbox.h"

#define AGENT_LINK_BUCKETS 64u /* of calls, by id; a power of two */
#define AGENT_LINK_REASON_MAX 256

enum agent_link_state {
    AGENT_LINK_GREETING,
    AGENT_LINK_GREETED,
    AGENT_LINK_CONFIGURING,
    AGENT_LINK_READY,
    AGENT_LINK_SILENT,
    AGENT_LINK_CLOSED,
    AGENT_LINK_STATE_MAX
};

struct agent_link {
    struct loop *loop;
    const struct agent_link_events *events; /* NULL: freed, waits for `busy` to end */
    void *ctx;
    enum agent_link_state state;
    unsigned busy; /* nesting of our own callbacks; memory stays meanwhile */
    bool settling; /* the answer to agent_link_settle() is awaited */

    int fd;
    struct loop_io *io;
    bool want_write;
    struct buf in; /* a frame that has not come whole */
    struct buf out;
    size_t out_sent; /* of `out` */
    struct loop_notice flush;
    const char *failure; /* static; the flush closes the link with it. NULL: none */

    struct loop_timer *watch; /* armed in ready and silent */
    struct keep_alive keep_alive;

    struct mailbox mailbox;
    struct loop_timer *rest; /* armed while the mailbox has memory to give back */
    /* What has been put into a slot and not been told yet, so that what is written in one turn
     * shares it. CALL is NULL: nothing. */
    struct {
        struct agent_call *call;
        unsigned stream;
        unsigned slot;
        size_t size;
    } filling;

    struct list calls[AGENT_LINK_BUCKETS]; /* struct agent_call */
    size_t call_count;
    bool wide;       /* the agent lets windows be opened to AGENT_WIDE_WINDOW_BYTES */
    size_t given_up; /* calls that keep the link silent */
    uint64_t next_id;
};

/* What waits to be sent. */
size_t agent_link_queued(const struct agent_link *link);
void agent_link_send(struct agent_link *link, const struct agent_frame *frame);
/* The flush is to come: something waits that is in no frame yet. */
void agent_link_send_soon(struct agent_link *link);
/* A slot is being used: see that its memory is given back later. */
void agent_link_use_mailbox(struct agent_link *link);
/* Slots of the guest that were emptied are told: when it is worth it, or in any case (FORCE).
 */
void agent_link_return_slots(struct agent_link *link, bool force);
/* A frame with a map. 0, -ENOMEM, -ENOBUFS, -EMSGSIZE; nothing is sent then. */
int agent_link_send_map(struct agent_link *link, enum agent_frame_kind kind, uint64_t id,
                        const char *operation, const struct type *type, const void *value);
/* From ready to silent, with the event and the failing of calls; else nothing. */
void agent_link_fall_silent(struct agent_link *link, const char *reason);
/* Brackets whatever may run callbacks; the leave may free the link. */
void agent_link_enter(struct agent_link *link);
void agent_link_leave(struct agent_link *link);

/* agent_call.c: a frame of a call. NULL, or what is wrong with it (static text). */
const char *agent_call_frame(struct agent_link *link, const struct agent_frame *frame);
/* What is being filled is told. */
void agent_call_send_filling(struct agent_link *link);
/* Streams that agent_call_write() held back may go on. */
void agent_call_resume_all(struct agent_link *link);
/* Frees every call; all have failed before. */
void agent_call_free_all(struct agent_link *link);
