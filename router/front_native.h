/* front_native.h - the native front: who may connect, and all who did.
 *
 * Adapters and native callers come through the same listeners:
 * `ipc://<runtime_dir>/router.sock` and, if configured, tls+tcp. What one connection does is
 * native_peer.c's. */
#pragma once

#include "link.h"
#include "log_limit.h"
#include "router.h"

struct front_native {
    struct router *router;
    struct link_timing timing;
    struct stream_listener *ipc;
    struct stream_listener *tls; /* or NULL */
    char *tls_url;               /* of it */
    struct list peers;
    unsigned peer_count;
    unsigned greeting_count;
    unsigned remote_greeting_count;  /* of these, of other hosts */
    struct log_limit refusals, ends; /* that are worth a line */
    bool closing;
    /* closing, and the last peer is gone; may be NULL. */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

#define FRONT_NATIVE_ERROR_MAX 512

/* Listens on URL (ipc) and on sandbox.adapter_listen. TIMING: all zero for the limits. 0, or
 * -errno and a line for people. */
int front_native_open(struct front_native *front, struct router *router, const char *url,
                      const struct link_timing *timing, char ret_error[FRONT_NATIVE_ERROR_MAX]);
/* After router_reload(): adapter_listen may have changed. A failure is logged. */
void front_native_reload(struct front_native *front);

/* Shutdown: no new connections; then all that is queued goes out, within LINGER_MS. */
void front_native_stop_listening(struct front_native *front);
void front_native_close(struct front_native *front, uint32_t linger_ms);
/* At once; after a failed open too. */
void front_native_done(struct front_native *front);
