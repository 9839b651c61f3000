/* websocket.h - RFC 6455 for both roles: a decoder that is fed bytes, an encoder of frames, and
 * the keys of the handshake. No socket, no timers, no extensions.
 *
 * The decoder is pulled: websocket_next() takes bytes until something has happened. A breach of
 * the protocol is an event with the close code that answers it; after it, and after a close
 * frame, nothing more is decoded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "span.h"

enum websocket_role {
    WEBSOCKET_SERVER, /* expects masked frames, sends plain ones */
    WEBSOCKET_CLIENT  /* the reverse */
};

enum websocket_opcode {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10
};

#define WEBSOCKET_CONTROL_MAX_BYTES 125
#define WEBSOCKET_REASON_MAX_BYTES 123
#define WEBSOCKET_HEAD_MAX_BYTES 14

enum websocket_close_code {
    WEBSOCKET_CLOSE_NORMAL = 1000,
    WEBSOCKET_CLOSE_GOING_AWAY = 1001,
    WEBSOCKET_CLOSE_PROTOCOL = 1002,
    WEBSOCKET_CLOSE_NONE = 1005, /* a close frame without a code; never on the wire */
    WEBSOCKET_CLOSE_INVALID_TEXT = 1007,
    WEBSOCKET_CLOSE_POLICY = 1008,
    WEBSOCKET_CLOSE_TOO_BIG = 1009,
    WEBSOCKET_CLOSE_INTERNAL = 1011
};

enum websocket_event_kind {
    WEBSOCKET_EVENT_NONE,    /* all input taken, more needed */
    WEBSOCKET_EVENT_MESSAGE, /* whole message: is_text, data, size */
    WEBSOCKET_EVENT_PING,    /* data, size: to be echoed */
    WEBSOCKET_EVENT_PONG,
    WEBSOCKET_EVENT_CLOSE, /* code (WEBSOCKET_CLOSE_NONE without one); data, size: the reason */
    WEBSOCKET_EVENT_FAILED /* code to close with; reason */
};

struct websocket_event {
    enum websocket_event_kind kind;
    bool is_text;
    const uint8_t *data; /* the decoder's, until its next call */
    size_t size;
    unsigned code;
    const char *reason; /* static text for the log */
};

/* Incremental check of UTF-8: what the bytes so far promise of the next ones. */
struct websocket_utf8 {
    unsigned needed;   /* continuation bytes still to come */
    uint8_t low, high; /* range of the next of them */
};

enum websocket_state { WEBSOCKET_HEAD, WEBSOCKET_PAYLOAD, WEBSOCKET_ENDED };

struct websocket {
    enum websocket_role role;
    enum websocket_state state;
    size_t max_message_bytes; /* fragments summed */
    bool discards;            /* messages are checked, not kept: their events have no data */

    uint8_t head[WEBSOCKET_HEAD_MAX_BYTES];
    size_t head_size; /* bytes of it that are there */

    bool final;                   /* of the frame under way */
    enum websocket_opcode opcode; /* of the frame under way */
    uint8_t mask[4];
    uint64_t payload_size;
    uint64_t payload_taken;

    bool in_message;                      /* a fragmented message is open */
    enum websocket_opcode message_opcode; /* TEXT or BINARY */
    uint64_t message_size;                /* promised by the heads so far */
    struct websocket_utf8 utf8;
    struct buf message;
    uint8_t control[WEBSOCKET_CONTROL_MAX_BYTES];
};

void websocket_init(struct websocket *ws, enum websocket_role role, size_t max_message_bytes);
void websocket_done(struct websocket *ws);

/* Takes bytes off *data, *size until an event or until there are none. 0, or -ENOMEM. */
int websocket_next(struct websocket *ws, const uint8_t **data, size_t *size,
                   struct websocket_event *ret_event);
/* Bytes held of a message that is not whole yet. */
size_t websocket_held_bytes(const struct websocket *ws);

/* The head of an unfragmented frame; the result is its size. MASK: 4 bytes, or NULL. */
size_t websocket_head(enum websocket_opcode opcode, uint64_t size, const uint8_t *mask,
                      uint8_t ret_head[WEBSOCKET_HEAD_MAX_BYTES]);
/* Appends a whole frame; as client with a fresh random mask. 0, -ENOMEM, -ENOBUFS, or -errno of
 * the random source. */
int websocket_frame_append(struct buf *to, enum websocket_role role,
                           enum websocket_opcode opcode, const void *data, size_t size);
/* A close frame's payload; the reason is cut at a character. Without a code it is empty. */
size_t websocket_close_payload(unsigned code, const char *reason,
                               uint8_t ret_payload[WEBSOCKET_CONTROL_MAX_BYTES]);
/* May this code stand in a close frame? */
bool websocket_close_code_valid(unsigned code);

/* The handshake. */
#define WEBSOCKET_KEY_SIZE 24
#define WEBSOCKET_ACCEPT_SIZE 28
bool websocket_key_valid(struct span key); /* base64 of 16 bytes */
/* The answer to a valid key, and a random key. 0 or -errno. */
int websocket_key_accept(struct span key, char ret_accept[WEBSOCKET_ACCEPT_SIZE + 1]);
int websocket_key_new(char ret_key[WEBSOCKET_KEY_SIZE + 1]);
