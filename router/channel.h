/* channel.h - data channels (contract 9, iii-wire 4): the relay between one writer and one
 * reader.
 *
 * The two ends may be websockets, streams of native clients or of adapters; all use this. The
 * channel owns what was sent and not yet taken; it belongs to nobody and outlives its creator.
 *
 * Held at most: 256 KiB and `buffer` messages, or one larger message. An end that was not
 * attached 5 minutes after creation ends the channel; so do 5 minutes in which a byte that
 * waits for an attached reader does not move.
 *
 * States of a channel: open -> ended (the writer's clean end: what is held is still delivered)
 * -> gone; open -> gone (an abort: what is held is dropped, the other end hears of it at once).
 * Each attached end hears of its own end exactly once, by `closed`, or detaches itself by
 * channel_finish(), channel_abort() or channel_leave(). */
#pragma once

#include "envelope.h"
#include "loop.h"
#include "router_limits.h"

struct channel_set; /* all channels of a router */
struct channel_end; /* one attached end */

enum channel_direction { CHANNEL_READ, CHANNEL_WRITE };

/* Why a channel ended for this end. */
enum channel_close {
    CHANNEL_CLOSE_CLEAN,   /* reader: all that was written before the clean end has come */
    CHANNEL_CLOSE_ABORTED, /* the other side aborted or was lost, or nothing moved */
    CHANNEL_CLOSE_EXPIRED  /* the other end was not taken in time */
};

struct channel_reason {
    enum channel_close close;
    struct span code;    /* ABORTED, EXPIRED: "S218" unless the other side gave one */
    struct span message; /* the same; valid UTF-8 only if the other side's was */
};

/* Never called from inside channel_attach(). Any channel function may be called from inside a
 * callback, channel_leave() of its own end included. */
struct channel_events {
    /* Reader: bytes of the stream, one message or a part of one; at most the grant unless the
     * end takes whole messages. */
    void (*data)(void *ctx, const uint8_t *data, size_t size);
    /* Reader: a message beside the data, in order with it; NULL: dropped. */
    void (*text)(void *ctx, const uint8_t *text, size_t size);
    /* Writer: so many bytes more may be sent. A writer without windows (a websocket) takes it
     * as: read on. */
    void (*grant)(void *ctx, uint64_t bytes);
    /* Once, last. The end is detached and gone when this returns. Borrowed. */
    void (*closed)(void *ctx, const struct channel_reason *reason);
};

#define CHANNEL_TEXT_SIZE 37 /* a UUID and its NUL */
struct channel_refs {
    char channel_id[CHANNEL_TEXT_SIZE];
    char access_key[CHANNEL_TEXT_SIZE];
};

int channel_set_new(struct loop *loop, struct channel_set **ret_set); /* 0 or -errno */
void channel_set_free(struct channel_set *set); /* ends that are left are detached silently */
DEFINE_CLEANUP(struct channel_set *, channel_set_free)
/* Other times than those of router_limits.h, for channels made afterwards; for tests. */
void channel_set_times(struct channel_set *set, uint32_t untaken_ms, uint32_t stall_ms);
size_t channel_set_count(const struct channel_set *set);
size_t channel_set_held_bytes(const struct channel_set *set);

/* BUFFER is in messages, 0 for the default, else 1 to CHANNEL_BUFFER_MAX. 0, -EMFILE
 * (CHANNELS_MAX are open), -ENOMEM, or -errno of the random source. */
int channel_create(struct channel_set *set, uint32_t buffer, struct channel_refs *ret_refs);

struct channel_attach {
    struct span channel_id;
    struct span access_key; /* compared in constant time */
    enum channel_direction direction;
    /* Writer: it sends only what `grant` allowed, nothing before the reader is there; then
     * message boundaries carry no meaning and do not count against `buffer`. Without it: the
     * writer sends what it has and pauses when told to. */
    bool windowed;
    /* Reader: messages come whole, as they were sent, while any grant is left. Without it: cut
     * to ENVELOPE_DATA_MAX_BYTES and never beyond the grant. */
    bool whole_messages;
    const struct channel_events *events;
    void *ctx;
};

/* One attach for each end, ever. -ENOENT: unknown, expired or wrong key, which look the same;
 * -EBUSY: this end was taken before. A reader gets nothing before its first channel_grant(). */
int channel_attach(struct channel_set *set, const struct channel_attach *attach,
                   struct channel_end **ret_end);

/* Writer. 0: go on; 1: taken too, but enough is held: send no more before `grant`. -EMSGSIZE: a
 * windowed writer passed its window, or another one went on in spite of 1 for more than
 * CHANNEL_OVERRUN_BYTES; -ENOMEM. On an error nothing was taken: abort. */
int channel_write(struct channel_end *writer, const uint8_t *data, size_t size);
/* Writer: a message beside the data. The same results; it counts like data. */
int channel_write_text(struct channel_end *writer, const uint8_t *text, size_t size);

/* Reader: may be given so many bytes more. May deliver before it returns, and `closed` too: the
 * end may be gone then. */
void channel_grant(struct channel_end *reader, uint64_t bytes);

/* Detaching; the end is gone when these return and hears nothing more. */
void channel_finish(struct channel_end *writer); /* clean end of the stream */
/* Both: the other side hears CODE and MESSAGE; an absent code is "S218". */
void channel_abort(struct channel_end *end, struct span code, struct span message);
/* Both: the peer is gone without a word: an abort with a standard message. */
void channel_leave(struct channel_end *end);
