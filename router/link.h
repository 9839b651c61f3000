/* link.h - one native connection: well-formed messages, liveness, and why it ended.
 *
 * It owns the SP framing below and answers PING by itself. What messages mean is its owner's
 * business, and so is the out-queue's limit (backlog.h). */
#pragma once

#include "envelope.h"
#include "sp.h"

struct link;

/* Injected, so that a test need not wait. Zero: the limit of router_limits.h. */
struct link_timing {
    uint32_t hello_timeout_ms;
    uint32_t ping_interval_ms;
    unsigned ping_misses_max;
};

struct link_events {
    /* One message, PING and PONG excepted. All borrowed; DATA may be changed in place. */
    void (*message)(void *ctx, const struct envelope *envelope, uint8_t *data, size_t size);
    void (*drained)(void *ctx);
    /* Something came from a peer that was challenged. Must not free the link. */
    void (*alive)(void *ctx);
    /* Once, last, never from inside a call of link_*(). BY_US: the peer broke a rule or was
     * silent; else it left. REASON is static text. */
    void (*closed)(void *ctx, bool by_us, const char *reason);
};

/* Consumes the stream, also on failure. 0 or -errno. */
int link_new(struct loop *loop, struct stream *own_stream, enum sp_mapping mapping,
             const struct link_timing *timing, const struct link_events *events, void *ctx,
             struct link **ret_link);
void link_free(struct link *link); /* closes at once; no callback follows */
DEFINE_CLEANUP(struct link *, link_free)

void link_set_max_message_bytes(struct link *link, size_t max_message_bytes);
/* The peer has said who it is: the time for that stops. WATCH: from now on its silence is its
 * end; else it may be silent, and only the end of its connection is. */
void link_greeted(struct link *link, bool watch);

/* 0, or -errno when it cannot be queued: the link is as good as gone. */
int link_send(struct link *link, const void *data, size_t size);
int link_sendv(struct link *link, const struct iovec *parts, int count);
int link_send_envelope(struct link *link, const struct envelope *envelope);
size_t link_queued_bytes(const struct link *link);

/* Reading; the silence of a peer that we do not read from is not held against it. */
void link_pause(struct link *link);
void link_resume(struct link *link);

/* Sends a PING now; `alive` tells of whatever comes next. */
void link_challenge(struct link *link);

/* The peer broke the rules or is lost: nothing of it is read any more and `closed` follows. */
void link_break(struct link *link, const char *reason);
/* Sends what is queued, then closes; `closed` follows. */
void link_finish(struct link *link, uint32_t linger_ms);

int link_peer_uid(const struct link *link, uid_t *ret_uid);
