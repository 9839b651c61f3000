/* held_reads.h - the reads of this adapter whose reader has not come yet, and the memory they
 * hold (contract 9.3: produced lazily, the oldest is dropped first). How many they may be is
 * channel.c's business; how much, ours. */
#pragma once

#include <stddef.h>

#include "list.h"

#define HELD_READS_MAX_BYTES (256u * 1024 * 1024)

struct held_reads {
    struct list reads; /* struct held_read, oldest first */
    size_t bytes;
};

/* Lives in its owner. */
struct held_read {
    struct list node;
    size_t bytes;
    void (*drop)(void *ctx); /* gives the read up; it leaves the list thereby */
    void *ctx;
};

void held_reads_init(struct held_reads *held);
void held_read_init(struct held_read *read, void (*drop)(void *ctx), void *ctx);
/* Adds READ, or counts that it holds BYTES now; the oldest others are dropped to make room. */
void held_read_set(struct held_reads *held, struct held_read *read, size_t bytes);
/* Its reader came, or it is over. */
void held_read_leave(struct held_reads *held, struct held_read *read);
