/* stream.h - byte streams carried by nng (ipc, tcp, and TLS over tcp), seen from the loop's
 * thread.
 *
 * nng's callbacks run on nng's threads. They do one thing: note the completion and wake the
 * loop. All functions here and all callbacks belong to the loop's thread, so users need no
 * locks. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "buf.h"
#include "loop.h"
#include "tls.h"

struct stream;
struct stream_listener;
struct stream_dialer;

struct stream_events {
    /* Bytes came. Borrowed for the call; all are taken. */
    void (*data)(void *ctx, uint8_t *data, size_t size);
    /* The out-queue fell to the low-water mark after it had passed the high-water mark. */
    void (*drained)(void *ctx);
    /* The end, exactly once, last: 0 for an orderly end by the peer, else -errno. The owner
     * frees the stream, in this callback or later. Not called after stream_free(). */
    void (*closed)(void *ctx, int error);
};

/* URL: ipc:///path, tcp://host:port ([v6]:port; port 0 picks one), tls+tcp://host:port. An ipc
 * socket is made with mode 0600; one left behind by a dead process is replaced.
 * ACCEPTED consumes the stream. 0, or -errno (-EADDRINUSE, -EADDRNOTAVAIL, -EINVAL for a URL
 * that cannot be read or a host nobody knows, …, and what tls_config_new_server() says of TLS).
 */
typedef void (*stream_accepted_fn)(void *ctx, struct stream *own_stream);
int stream_listen(struct loop *loop, const char *url, const struct tls_files *tls,
                  stream_accepted_fn accepted, void *ctx,
                  struct stream_listener **ret_listener);
uint16_t stream_listener_port(const struct stream_listener *listener);
void stream_listener_free(struct stream_listener *listener);
DEFINE_CLEANUP(struct stream_listener *, stream_listener_free)

/* DONE once: 0 and the stream, or -errno (-ETIMEDOUT after TIMEOUT_MS) and NULL. Freeing the
 * dialer before that cancels it silently; free it after DONE as well. */
typedef void (*stream_dialed_fn)(void *ctx, int error, struct stream *own_stream);
int stream_dial(struct loop *loop, const char *url, const struct tls_files *tls,
                uint32_t timeout_ms, stream_dialed_fn done, void *ctx,
                struct stream_dialer **ret_dialer);
void stream_dialer_free(struct stream_dialer *dialer);
DEFINE_CLEANUP(struct stream_dialer *, stream_dialer_free)

/* Begins to read. EVENTS is borrowed for the stream's life. Before this nothing is delivered.
 */
void stream_start(struct stream *stream, const struct stream_events *events, void *ctx);

/* Queues a copy; what is queued in one turn goes out together. -ENOBUFS when the out-queue
 * would pass its limit (nothing of this send is queued), -EPIPE after the end. */
#define STREAM_QUEUE_MAX_BYTES (64u * 1024 * 1024)
#define STREAM_HIGH_WATER_BYTES (1024u * 1024)
#define STREAM_LOW_WATER_BYTES (256u * 1024)
int stream_send(struct stream *stream, const void *data, size_t size);
/* The same of at most STREAM_PARTS_MAX parts. What is big goes out at once, as far as the
 * socket takes it, and without a copy. */
#define STREAM_PARTS_MAX 8u
int stream_sendv(struct stream *stream, const struct iovec *parts, unsigned count);
/* For messages that are larger than that; never below STREAM_QUEUE_MAX_BYTES. */
void stream_set_queue_max(struct stream *stream, size_t queue_max_bytes);
/* The same without parts: *ret_place is room for exactly SIZE bytes that count as queued; the
 * caller fills it before it calls anything else of this stream or returns to the loop. */
int stream_send_place(struct stream *stream, size_t size, uint8_t **ret_place);
size_t stream_queued_bytes(const struct stream *stream);

/* Back-pressure: post no next read. One chunk already read may still be delivered on resume. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

/* Sends what is queued, then closes; `closed` comes when that is done or LINGER_MS have passed.
 */
void stream_finish(struct stream *stream, uint32_t linger_ms);
/* Closes at once and frees; no callback follows. NULL is fine. */
void stream_free(struct stream *stream);
DEFINE_CLEANUP(struct stream *, stream_free)

int stream_peer_uid(const struct stream *stream, uid_t *ret_uid); /* ipc only; else -ENOTSUP */
