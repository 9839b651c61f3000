/* native_stream.h - the streams of one native connection: OPEN, DATA, CREDIT and CLOSE on one
 * side, ends of channels on the other (docs/adapter-protocol.md 5). */
#pragma once

#include "envelope.h"
#include "table.h"

/* A member of struct native_peer. */
struct native_streams {
    struct table *by_id;
    uint64_t highest_id; /* ever opened: a higher one cannot be of a stream just closed */
};

int native_streams_init(struct native_streams *streams); /* 0 or -errno */
/* The peer is gone: what is open is left, which aborts it. Twice is fine. */
void native_streams_done(struct native_streams *streams);

/* The peer's out-queue is short again. */
void native_streams_drained(struct native_streams *streams);

/* A message of the four kinds. One that breaks the rules breaks the link. */
void native_streams_message(struct native_streams *streams, const struct envelope *envelope);
