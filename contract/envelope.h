/* envelope.h - the messages between router, adapter and native caller
 * (docs/adapter-protocol.md).
 *
 * One message is one msgpack array: kind, id, elements by kind. Bodies are opaque bytes here.
 * The id is always written as uint64 (0xcf), so that envelope_set_id() changes it in place. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "span.h"
#include "version.h"

enum envelope_kind {
    ENVELOPE_HELLO,
    ENVELOPE_WELCOME,
    ENVELOPE_REFUSED,
    ENVELOPE_CALL,
    ENVELOPE_REPLY,
    ENVELOPE_ERROR,
    ENVELOPE_EVENT,
    ENVELOPE_CANCEL,
    ENVELOPE_OPEN,
    ENVELOPE_DATA,
    ENVELOPE_CREDIT,
    ENVELOPE_CLOSE,
    ENVELOPE_PING,
    ENVELOPE_PONG,
    ENVELOPE_KIND_MAX
};

#define ENVELOPE_WINDOW_BYTES (256u * 1024)
/* A traceparent of W3C's version 00; a longer one is passed on, but not logged. */
#define ENVELOPE_TRACE_LOGGED_BYTES 55u
#define ENVELOPE_DATA_MAX_BYTES (64u * 1024)
#define ENVELOPE_FEATURES_MAX 64
#define ENVELOPE_NO_DEADLINE UINT64_MAX

struct envelope {
    enum envelope_kind kind;
    uint64_t id;

    struct span body;        /* CALL REPLY ERROR EVENT: JSON; DATA: bytes */
    struct span operation;   /* CALL */
    uint64_t deadline_ms;    /* CALL: from now, ENVELOPE_NO_DEADLINE for nil */
    struct span traceparent; /* CALL, optional 6th element {call, traceparent} */
    uint64_t credit;         /* CREDIT; WELCOME: the first window */

    /* OPEN */
    struct span channel_id;
    struct span access_key;
    bool write; /* direction "write" */

    /* CLOSE, REFUSED: nil is absent code */
    struct span code;
    struct span message;

    /* HELLO, WELCOME */
    struct span role; /* "adapter" or "caller" */
    struct span name;
    struct span version; /* of the program */
    struct span instance;
    struct span docs_base;
    bool has_contract; /* a hello without the key is malformed for an adapter */
    struct contract_version contract;
    uint64_t max_message_bytes;
    unsigned feature_count;
    struct span features[ENVELOPE_FEATURES_MAX];
};

/* Checks every count against the bytes that are there before anything is trusted; spans point
 * into DATA. Unknown map keys and further elements are skipped. 0, -EPROTO (malformed),
 * -ENOTSUP (well-formed, unknown kind). *ret_reason: static text for the log. */
int envelope_decode(const uint8_t *data, size_t size, struct envelope *ret_envelope,
                    const char **ret_reason);

/* Appends the whole message. 0, -ENOMEM, -ENOBUFS. */
int envelope_encode(const struct envelope *envelope, struct buf *to);

/* The first bytes of a message that carries BODY_SIZE bytes as its last element, for kinds
 * REPLY, ERROR, EVENT, DATA: the caller sends the body behind it without copying. */
#define ENVELOPE_HEAD_MAX 32
size_t envelope_head(enum envelope_kind kind, uint64_t id, size_t body_size,
                     uint8_t ret_head[ENVELOPE_HEAD_MAX]);

/* Rewrites the id in place; -EPROTO when it is not written as uint64. */
int envelope_set_id(uint8_t *data, size_t size, uint64_t id);
/* Kind and id alone, by their first bytes: the rest may still be malformed. As
 * envelope_decode(). */
int envelope_peek(const uint8_t *data, size_t size, enum envelope_kind *ret_kind,
                  uint64_t *ret_id);
