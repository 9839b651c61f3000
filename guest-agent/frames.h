/* frames.h - the frames that the agent sends, appended whole to a buffer.
 *
 * Pure: the loop's thread appends to the link's queue, a file operation's thread to its own
 * buffer. On failure (-ENOMEM, -ENOBUFS, -EMSGSIZE) the buffer is as it was. */
#pragma once

#include "agent_frame.h"
#include "error.h"
#include "tables.h"

/* HELLO, READY, HEAD, REPLY: a map of TYPE. */
int frames_map(struct buf *to, enum agent_frame_kind kind, uint64_t id, const struct type *type,
               const void *value);
int frames_error(struct buf *to, uint64_t id, const struct sandbox_error *err);
int frames_data(struct buf *to, uint64_t id, unsigned stream, const void *data, size_t size);
int frames_slot(struct buf *to, uint64_t id, unsigned stream, unsigned slot, size_t size);
int frames_return(struct buf *to, uint32_t slots);
int frames_credit(struct buf *to, uint64_t id, unsigned stream, uint64_t size);
int frames_end(struct buf *to, uint64_t id, unsigned stream, const char *reason);
int frames_pong(struct buf *to, uint64_t id);
