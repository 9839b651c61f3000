/* capture.h - one output stream of an exec: the first bytes for the reply, the last ones for
 * `partial` (contract 3.5, 5.2.7). Memory is bounded whatever comes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"

#define CAPTURE_TAIL_BYTES (64u * 1024)

struct capture {
    size_t cap;     /* bytes of the reply */
    uint64_t total; /* bytes that came */
    struct buf head;
    struct buf tail; /* what came behind the head; only its end is kept */
};

void capture_init(struct capture *capture, size_t cap);
void capture_done(struct capture *capture);
/* Without memory the stream is cut where it ran out. */
void capture_add(struct capture *capture, const uint8_t *data, size_t size);

bool capture_truncated(const struct capture *capture);
/* Appends the first bytes as UTF-8. 0 or -ENOMEM. */
int capture_text(const struct capture *capture, struct buf *to);
/* Appends the last CAPTURE_TAIL_BYTES as UTF-8; *ret_truncated: earlier bytes are missing. */
int capture_tail_text(const struct capture *capture, struct buf *to, bool *ret_truncated);
/* The tails of stdout and stderr for an error; without memory empty ones, or NULL. */
struct error_partial *capture_partial(const struct capture captures[2]);
