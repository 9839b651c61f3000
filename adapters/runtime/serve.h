/* serve.h - the link to the router: dial, greet, keep alive, carry messages
 * (docs/adapter-protocol.md).
 *
 * Owns the one connection and its generation. While there is none it dials for ever, with
 * back-off and jitter. What the messages mean is left to request.c and channel.c. */
#pragma once

#include "adapter.h"
#include "buf.h"
#include "envelope.h"

/* PING when nothing came for so long; after so many of these spans the link is lost
 * (keep_alive.h). */
#define SERVE_PING_MS 5000u
#define SERVE_SILENCES_MAX 3u
/* What may wait to be sent (or one message, if that is larger); more: the router does not read,
 * and the link is given up. */
#define SERVE_QUEUE_MAX_BYTES (48u * 1024 * 1024)

struct serve;

/* URL of the router: ipc://, tcp:// or tls+tcp://. Begins to dial at once. */
int serve_new(struct adapter *adapter, const char *url, struct serve **ret_serve);
void serve_free(struct serve *serve);
DEFINE_CLEANUP(struct serve *, serve_free)

/* Generation of the connection that is greeted now; 0: none. Never used twice. */
uint64_t serve_link(const struct serve *serve);

/* Whether any output fits in a reply to the router that is connected (contract 11.2); if not,
 * it logs why. */
bool serve_accepts(const struct serve *serve, const struct adapter_settings *settings);

/* What the router said of itself; the defaults before that. */
const char *serve_docs_base(const struct serve *serve);
size_t serve_max_message_bytes(const struct serve *serve);
size_t serve_first_window(const struct serve *serve); /* of a stream that is read */

/* Sends one message on the connection LINK; no callback runs inside. -ENOTCONN: it is gone;
 * -EMSGSIZE: the router would not take it; -ENOMEM. */
int serve_send(struct serve *serve, uint64_t link, const struct envelope *message);
/* REPLY, ERROR, EVENT, DATA: head and body go out without a copy of the body in between. */
int serve_send_body(struct serve *serve, uint64_t link, enum envelope_kind kind, uint64_t id,
                    const void *body, size_t size);
/* A fresh id for what this side begins: OPEN, CALL. */
uint64_t serve_next_id(struct serve *serve);

/* Sends what is queued, then closes for good; DONE once, when it is closed or LINGER_MS have
 * passed, never from inside the call. */
void serve_finish(struct serve *serve, uint32_t linger_ms, void (*done)(void *ctx), void *ctx);

/* For tests: breaks the link as a lost connection would; bytes sent as they are. */
void serve_disconnect(struct serve *serve);
void serve_send_raw(struct serve *serve, const void *data, size_t size);
