/* web_connection.h - one accepted connection: its request, then its frames both ways.
 *
 * Owns the stream, the codecs, the out-queue, pings and close handshakes. What the request
 * means is the owner's business (front_web.c), what messages mean the role's (web_main.c,
 * web_channel.c). Nothing is freed inside a callback: ends are settled at the end of the turn.
 */
#pragma once

#include "backlog.h"
#include "http.h"
#include "log_limit.h"
#include "metrics.h"
#include "stream.h"
#include "web_limits.h"
#include "websocket.h"

struct web_connection;

enum web_state {
    WEB_REQUEST,  /* the head is collected, for at most WEB_HEAD_TIMEOUT_MS */
    WEB_ANSWERED, /* a plain answer is queued; what still comes is dropped, so that closing does
                   * not reset what was sent */
    WEB_OPEN,     /* frames both ways */
    WEB_CLOSING,  /* our close frame is queued: messages are dropped, the echo is awaited */
    WEB_LEAVING,  /* the last bytes are on their way, nothing is read */
    WEB_GONE,     /* no stream any more; freed at the end of this turn */
    WEB_STATE_MAX
};

/* Close codes that no frame carries. */
#define WEB_CODE_LOST 1006u /* TCP ended, or we ended it, without the peer's close frame */

struct web_role {
    const char *name; /* for the log */
    size_t max_message_bytes;
    bool discards; /* messages are dropped as they come */
    bool pings;    /* silence is looked into */
    void (*message)(void *ctx, bool is_text, const uint8_t *data, size_t size);
    /* The out-queue is short again after web_connection_is_full(). May be NULL. */
    void (*drained)(void *ctx);
    /* Once, last; the connection must not be used afterwards. CODE: of the peer's close frame,
     * WEBSOCKET_CLOSE_NONE for one without, WEB_CODE_LOST for none. May be NULL. */
    void (*gone)(void *ctx, unsigned code);
};

struct web_connection_events {
    /* The head is complete or wrong (http_head.state): answer, or upgrade. */
    void (*request)(void *ctx, struct web_connection *connection, const struct http_head *head);
    /* It is not waiting for its request any more. */
    void (*greeted)(void *ctx, struct web_connection *connection);
    /* Last; it is freed when this returns. */
    void (*freed)(void *ctx, struct web_connection *connection);
};

struct web_connection_shared {
    struct loop *loop;
    struct backlog *backlog;
    struct metrics_front_counters *counters;
    size_t partial_bytes;  /* of all messages that are not whole */
    struct log_limit ends; /* that are worth a line */
    const struct web_connection_events *events;
    void *ctx;
};

/* Consumes the stream, also on failure. SHARED is borrowed for its life. 0 or -errno. */
int web_connection_new(struct web_connection_shared *shared, struct stream *own_stream,
                       struct web_connection **ret_connection);
/* At once, without callbacks but `gone`; for the end of the process. */
void web_connection_free(struct web_connection *connection);

/* From `request`, or before it came. A plain answer that ends the connection. */
struct web_answer {
    unsigned status;
    const char *extra; /* header lines with CR LF, or "" */
    const char *content_type;
    struct span body;
};
void web_connection_answer(struct web_connection *connection, const struct web_answer *answer);
/* From `request` only: the 101. KEY is valid. False: it is gone, and CTX is not taken. */
bool web_connection_upgrade(struct web_connection *connection, struct span key,
                            const struct web_role *role, void *ctx);

/* One message from parts, copied. After the end it is dropped. */
void web_connection_send(struct web_connection *connection, enum websocket_opcode opcode,
                         const struct span *parts, size_t count);
/* More than a socket's worth waits: stop making more until `drained`. */
bool web_connection_is_full(const struct web_connection *connection);

/* Close frame behind what is queued, then WAIT_MS for the echo. `gone` follows. */
void web_connection_close(struct web_connection *connection, unsigned code, const char *reason,
                          uint32_t wait_ms);
/* Ends TCP without a word. `gone` follows. */
void web_connection_drop(struct web_connection *connection, const char *reason);

/* The role takes no more messages for now; a message already handed over is not undone. */
void web_connection_pause(struct web_connection *connection);
void web_connection_resume(struct web_connection *connection);

enum web_state web_connection_state(const struct web_connection *connection);
struct list *web_connection_node(struct web_connection *connection); /* the owner's list */
struct web_connection *web_connection_of(struct list *node);
