/* native_client.h - a caller over nng, for tests and benchmarks: calls and channels, one at a
 * time or many in flight, driven by turning its own loop.
 *
 * Waiting functions take a deadline in ms and return -ETIMEDOUT when it passes, -EPIPE when the
 * router is gone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "envelope.h"
#include "loop.h"

struct native_client;
struct native_call;
struct native_stream;

/* Dials URL (ipc:///…) as role "caller" and waits for WELCOME. */
int native_client_new(const char *url, uint32_t timeout_ms, struct native_client **ret_client);
/* Dials as an adapter of another contract major and waits for REFUSED; it answers no call. */
int native_client_new_misfit(const char *url, const char *name,
                             struct contract_version contract, uint32_t timeout_ms,
                             struct native_client **ret_client);
/* Plays the router for one adapter: listens on URL; _wait returns when the adapter has said
 * hello. Calls then go to it directly, by the operation's name without a namespace. */
int native_client_new_router(const char *url, struct native_client **ret_client);
int native_client_wait_adapter(struct native_client *client, uint32_t timeout_ms);
/* FN gets each CALL and CANCEL that comes; what they hold is borrowed. */
typedef void (*native_message_fn)(void *ctx, struct native_client *client,
                                  const struct envelope *message);
struct native_client_options {
    struct loop *loop; /* that several share; NULL: one of its own */
    const struct envelope *hello;
    native_message_fn on_call; /* or NULL */
    void *ctx;
};
extern const struct envelope native_caller_hello;
/* Returns when the hello is answered. -EPIPE: the router closed the connection instead. */
int native_client_new_with(const char *url, const struct native_client_options *options,
                           uint32_t timeout_ms, struct native_client **ret_client);
void native_client_free(struct native_client *client);
DEFINE_CLEANUP(struct native_client *, native_client_free)
struct loop *native_client_loop(struct native_client *client);
/* Sends a PING and waits for its answer: what was sent before has been taken, and what the
 * other side said at once to it has come. 0, or -errno. */
int native_client_settle(struct native_client *client, uint32_t timeout_ms);
bool native_client_refused(const struct native_client *client); /* parked */
bool native_client_lost(const struct native_client *client);
int native_client_send(struct native_client *client, const struct envelope *message);

/* FUNCTION with its namespace ("sandbox::exec"). */
int native_call_start(struct native_client *client, const char *function, const void *body,
                      size_t size, struct native_call **ret_call);
/* MESSAGE is a CALL; its id is chosen here. */
int native_call_start_with(struct native_client *client, const struct envelope *message,
                           struct native_call **ret_call);
/* 0 when an answer is there: native_call_ok() tells REPLY from ERROR. */
int native_call_wait(struct native_call *call, uint32_t timeout_ms);
bool native_call_done(const struct native_call *call);
bool native_call_ok(const struct native_call *call);
const char *native_call_body(const struct native_call *call, size_t *ret_size);
size_t native_call_event_count(const struct native_call *call);
const char *native_call_event(const struct native_call *call, size_t index);
void native_call_cancel(struct native_call *call);
void native_call_free(struct native_call *call);
DEFINE_CLEANUP(struct native_call *, native_call_free)

/* Attaches to a channel. */
int native_stream_open(struct native_client *client, const char *channel_id,
                       const char *access_key, bool write, struct native_stream **ret_stream);
/* Sends all, waiting for credit. -ECONNRESET when the other side aborted or refused. */
int native_stream_write(struct native_stream *stream, const void *data, size_t size,
                        uint32_t timeout_ms);
/* May be sent without waiting. */
uint64_t native_stream_credit(const struct native_stream *stream);
size_t native_stream_waiting(const struct native_stream *stream); /* read and not taken */
bool native_stream_ended(const struct native_stream *stream);
/* Returns when the other side has heard it. */
int native_stream_close(struct native_stream *stream);
/* Reads up to SIZE bytes; 0 bytes at the clean end; -ECONNRESET after an abort, see _reason. */
ssize_t native_stream_read(struct native_stream *stream, void *data, size_t size,
                           uint32_t timeout_ms);
const char *native_stream_code(const struct native_stream *stream); /* of an abort, or "" */
const char *native_stream_reason(const struct native_stream *stream);
/* Drops it: an abort unless it has ended. */
void native_stream_free(struct native_stream *stream);
DEFINE_CLEANUP(struct native_stream *, native_stream_free)
