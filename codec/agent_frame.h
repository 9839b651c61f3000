/* agent_frame.h - the frames of docs/agent-protocol.md: bytes to fields and back.
 *
 * Used by both ends. Pure: no state, no I/O, no memory. What comes is checked for form alone;
 * whether it may come now is the business of the end that it came to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "span.h"

enum agent_frame_kind {
    AGENT_FRAME_HELLO,
    AGENT_FRAME_CONFIGURE,
    AGENT_FRAME_READY,
    AGENT_FRAME_CALL,
    AGENT_FRAME_HEAD,
    AGENT_FRAME_REPLY,
    AGENT_FRAME_ERROR,
    AGENT_FRAME_CANCEL,
    AGENT_FRAME_DATA,
    AGENT_FRAME_CREDIT,
    AGENT_FRAME_END,
    AGENT_FRAME_PING,
    AGENT_FRAME_PONG,
    AGENT_FRAME_SLOT, /* from here on only where CONFIGURE allows the mailbox */
    AGENT_FRAME_RETURN,
    AGENT_FRAME_KIND_MAX
};

#define AGENT_FRAME_PREFIX_BYTES 4u
#define AGENT_FRAME_MAX_BYTES (16u * 1024 * 1024 + 64u * 1024) /* behind the prefix */
#define AGENT_DATA_MAX_BYTES (64u * 1024)
#define AGENT_WINDOW_BYTES (256u * 1024) /* of each stream without CREDIT */
/* What CREDIT may open the window of the agent's stream to; before AGENT_WIDE_MINOR the same.
 */
#define AGENT_WIDE_WINDOW_BYTES (1024u * 1024)
#define AGENT_WIDE_MINOR 3u
#define AGENT_STREAMS 3u

/* The mailbox: first the slots that the agent fills, then those of the host. */
#define AGENT_MAILBOX_SLOT_BYTES (256u * 1024)
#define AGENT_MAILBOX_SLOTS 16u /* of each side */
#define AGENT_MAILBOX_BYTES (2u * AGENT_MAILBOX_SLOTS * AGENT_MAILBOX_SLOT_BYTES)
#define AGENT_MAILBOX_SERIAL "mailbox" /* of the guest's disk */
/* What is less is cheaper as DATA. */
#define AGENT_MAILBOX_MIN_BYTES (32u * 1024)
/* So many slots are worth a RETURN, which wakes an emulated guest; CREDIT takes all along. */
#define AGENT_MAILBOX_RETURN_SLOTS (AGENT_MAILBOX_SLOTS / 2)

/* Which members count depends on the kind; the others are zero. */
struct agent_frame {
    enum agent_frame_kind kind;
    uint64_t id;
    unsigned stream;  /* DATA, CREDIT, END, SLOT; below AGENT_STREAMS */
    uint64_t credit;  /* CREDIT */
    uint32_t slot;    /* SLOT: number among those of its sender; below AGENT_MAILBOX_SLOTS */
    uint32_t size;    /* SLOT: bytes in it; 1 to AGENT_MAILBOX_SLOT_BYTES */
    uint32_t slots;   /* RETURN: those of the other side that were emptied, by bit */
    bool idle;        /* RETURN: no bytes move, the slots' memory can be given back */
    struct span text; /* CALL: operation; END: why it was aborted, absent when clean */
    struct span body; /* one whole msgpack map; of DATA the bytes */
};

/* Decodes what follows the prefix, all of it. Spans point into DATA. 0, or -EPROTO and a static
 * text that says what is wrong. */
int agent_frame_decode(const uint8_t *data, size_t size, struct agent_frame *ret_frame,
                       const char **ret_reason);

/* Appends a frame without a map in it, prefix included: CANCEL, DATA, CREDIT, END, PING, PONG,
 * SLOT, RETURN.
 * 0, -ENOMEM, -ENOBUFS. */
int agent_frame_encode(const struct agent_frame *frame, struct buf *to);

/* A frame whose last element is a map that the caller appends between the two: CONFIGURE, CALL
 * (OPERATION is its third element), and those of the agent. The end fills in the prefix that
 * the begin left open at *ret_start; -EMSGSIZE: over AGENT_FRAME_MAX_BYTES. After a failure the
 * caller cuts the buffer back to *ret_start. */
int agent_frame_begin(enum agent_frame_kind kind, uint64_t id, const char *operation,
                      struct buf *to, size_t *ret_start);
int agent_frame_finish(struct buf *to, size_t start);

/* A DATA frame whose bytes the caller puts in place: at to->data + to->size there is room for
 * SIZE of them, and the end takes how many came. None: there is no frame. 0, -ENOMEM, -ENOBUFS;
 * after a failure nothing was appended. */
int agent_frame_data_begin(uint64_t id, unsigned stream, size_t size, struct buf *to,
                           size_t *ret_start);
void agent_frame_data_finish(struct buf *to, size_t start, size_t size);

/* The prefix at DATA (AGENT_FRAME_PREFIX_BYTES of it). */
size_t agent_frame_size(const uint8_t *data);
