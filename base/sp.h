/* sp.h - nng PAIR0 messages over a stream: SP handshake, then length-prefixed messages.
 *
 * Speaks with any nng PAIR0 socket. The ipc mapping has a type byte before the length, the tcp
 * and tls mappings have not. A length over the limit closes the link before anything is
 * allocated; a buffer grows only with bytes that really came. */
#pragma once

#include <stdbool.h>
#include <sys/uio.h>

#include "stream.h"

struct sp;

enum sp_mapping { SP_MAPPING_IPC, SP_MAPPING_TCP };

struct sp_events {
    void (*ready)(void *ctx); /* the peer's handshake is right; sending is possible before */
    /* One message; borrowed for the call, may be changed in place. */
    void (*message)(void *ctx, uint8_t *data, size_t size);
    void (*drained)(void *ctx);
    /* Once, last. REASON is a static text for the log, never NULL. */
    void (*closed)(void *ctx, int error, const char *reason);
};

/* Consumes the stream, also on failure. HANDSHAKE_TIMEOUT_MS bounds the wait for the peer. */
int sp_new(struct loop *loop, struct stream *own_stream, enum sp_mapping mapping,
           size_t max_message_bytes, uint32_t handshake_timeout_ms,
           const struct sp_events *events, void *ctx, struct sp **ret_sp);
/* Both ways: what may come, and room in the out-queue for what may go. */
void sp_set_max_message_bytes(struct sp *sp, size_t max_message_bytes);
int sp_send(struct sp *sp, const void *data, size_t size);
int sp_sendv(struct sp *sp, const struct iovec *parts, int count);
size_t sp_queued_bytes(const struct sp *sp);
void sp_pause(struct sp *sp);
void sp_resume(struct sp *sp);
void sp_finish(struct sp *sp, uint32_t linger_ms);
int sp_peer_uid(const struct sp *sp, uid_t *ret_uid);
void sp_free(struct sp *sp);
DEFINE_CLEANUP(struct sp *, sp_free)
