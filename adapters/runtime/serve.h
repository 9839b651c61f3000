/* serve.h - the link to the router: dial, greet, keep alive, carry messages
 * (docs/adapter-protocol.md).
 *
 * Owns the one connection and its generation. While there is none it dials for ever, with
 * back-off and jitter. What the messages mean is left to request.c and channel.c. */
#pragma once

#include "adapter.h"
#include "buf.h"
#include "envelope.h"

/* Of the 3 x 5 s of the protocol: a PING when nothing came for so long, and how many may stay
 * unanswered. */
#define SERVE_PING_MS 5000u
#define SERVE_PINGS_MISSED_MAX 3u
/* What may wait to be sent; more: the router does not read, the link is given up. */
#define SERVE_QUEUE_MAX_BYTES (48u * 1024 * 1024)

struct serve;

/* URL of the router: ipc://, tcp:// or tls+tcp://. Begins to dial at once. */
int serve_new(struct adapter *adapter, const char *url, struct serve **ret_serve);
void serve_free(struct serve *serve);
DEFINE_CLEANUP(struct serve *, serve_free)

/* Generation of the connection that is greeted now; 0: none. Never used twice. */
uint64_t serve_link(const struct serve *serve);

/* What the router said of itself; the defaults before that. */
const char *serve_docs_base(const struct serve *serve);
size_t serve_max_message_bytes(const struct serve *serve);

/* Sends one message on the connection LINK. -ENOTCONN: it is gone; -EMSGSIZE: the router would
 * not take it; -ENOMEM. */
int serve_send(struct serve *serve, uint64_t link, const struct envelope *message);
/* REPLY, ERROR, EVENT, DATA: head and body go out without a copy of the body in between. */
int serve_send_body(struct serve *serve, uint64_t link, enum envelope_kind kind, uint64_t id,
                    const void *body, size_t size);
/* A fresh id for what this side begins: OPEN, CALL. */
uint64_t serve_next_id(struct serve *serve);

/* Calls the router. DONE once, never from inside the call: the body of the reply, or its error
 * envelope, or NULL when the link was lost; borrowed for the call. */
typedef void (*serve_done_fn)(void *ctx, enum envelope_kind kind, const struct span *body);
int serve_call(struct serve *serve, const char *operation, const char *json, serve_done_fn done,
               void *ctx, uint64_t *ret_call);
/* No callback follows. */
void serve_call_forget(struct serve *serve, uint64_t call);
