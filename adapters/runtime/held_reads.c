/* held_reads.c - see held_reads.h. */
#include "held_reads.h"

void held_reads_init(struct held_reads *held)
{
    list_init(&held->reads);
    held->bytes = 0;
}

void held_read_init(struct held_read *read, void (*drop)(void *ctx), void *ctx)
{
    list_init(&read->node);
    read->bytes = 0;
    read->drop = drop;
    read->ctx = ctx;
}

void held_read_set(struct held_reads *held, struct held_read *read, size_t bytes)
{
    if (list_empty(&read->node))
        list_append(&held->reads, &read->node);
    held->bytes += bytes - read->bytes;
    read->bytes = bytes;
    while (held->bytes > HELD_READS_MAX_BYTES) {
        struct held_read *oldest = LIST_ENTRY(held->reads.next, struct held_read, node);

        if (oldest == read)
            return;
        oldest->drop(oldest->ctx);
    }
}

void held_read_leave(struct held_reads *held, struct held_read *read)
{
    if (list_empty(&read->node))
        return;
    list_remove(&read->node);
    held->bytes -= read->bytes;
    read->bytes = 0;
}
