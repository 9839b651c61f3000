/* transfer.h - what upload and download share: the channel's socket and the time without a byte
 * that ends them. */
#pragma once

#include "client.h"

#define TRANSFER_IDLE_MS 60000u
#define TRANSFER_WHY_MAX_BYTES 256

struct transfer {
    struct client *client;
    struct web_socket *socket; /* NULL: not open, or its end came */
    uint64_t bytes;            /* moved */
    uint64_t moved_ms;         /* when the last of them did */
    bool held;                 /* by whoever reads from us: their time does not count */
    bool over;                 /* nothing more to wait for */
    bool failed;               /* and this is why */
    char why[TRANSFER_WHY_MAX_BYTES];
};

/* Connects to the channel of REF (an object of channel_id and access_key) as writer or reader;
 * CTX of the events is theirs. 0, -EBADMSG: REF is none; -errno. */
int transfer_open(struct transfer *transfer, struct span ref, bool writes,
                  const struct web_socket_events *events, void *ctx);
void transfer_moved(struct transfer *transfer, size_t bytes);
/* The first failure counts. */
void transfer_fail(struct transfer *transfer, const char *format, ...) _printf_(2, 3);
/* A text ahead of the close frame: of {"error": "S218: …"} is the failure, others say nothing.
 */
void transfer_take_text(struct transfer *transfer, struct span text);

/* Turns the loop until DONE, a failure, a signal, or TRANSFER_IDLE_MS without a byte (a
 * failure). */
enum client_outcome transfer_wait(struct transfer *transfer, bool (*done)(const void *ctx),
                                  const void *ctx);
