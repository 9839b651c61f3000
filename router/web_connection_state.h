/* web_connection_state.h - what web_connection.c (the way in) and web_send.c (the way out)
 * share; nobody else includes it. */
#pragma once

#include "web_connection.h"

/* A frame, or a part of one, that waits. */
struct web_out {
    struct list node;
    size_t size;
    size_t sent;
    uint8_t data[];
};

enum { WEB_PAUSED_BY_ROLE = 1, WEB_PAUSED_BY_BACKLOG = 2 };

struct web_connection {
    struct list node; /* the owner's */
    struct web_connection_shared *shared;
    struct stream *stream;
    enum web_state state;
    struct loop_timer *timer; /* head, answer, ping or close, by state */
    struct loop_notice settle;

    struct http_head head;
    bool more_may_come; /* behind a request that was answered */

    struct websocket ws;
    const struct web_role *role; /* NULL before the upgrade and once it heard of the end */
    void *role_ctx;
    unsigned end_code;

    unsigned pauses;
    struct buf held;      /* read, but not taken because of a pause */
    size_t partial_bytes; /* our share of shared->partial_bytes */
    uint64_t heard_ms;
    unsigned misses;

    struct list queue;       /* of struct web_out: whole frames */
    struct web_out *current; /* partly given to the stream */
    size_t queued_bytes;     /* of both */
    bool full;               /* the role waits for `drained` */
    uint32_t close_wait_ms;
    struct backlog_member backlog;
};

/* web_connection.c */
void web_connection_set_state(struct web_connection *connection, enum web_state state);
const char *web_connection_role_name(const struct web_connection *connection);

/* web_send.c */
void web_connection_flush(struct web_connection *connection);
void web_connection_control(struct web_connection *connection, enum websocket_opcode opcode,
                            const void *data, size_t size);
void web_connection_echo_close(struct web_connection *connection, unsigned code);
/* The last bytes go out, then TCP ends. */
void web_connection_leave(struct web_connection *connection);
/* Drops what waits, but not the rest of a frame that was begun. */
void web_connection_forget_queue(struct web_connection *connection);
void web_out_free(struct web_out *out);
