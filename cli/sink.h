/* sink.h - bytes onto a descriptor of ours (stdout, a pipe, a file) without ever blocking the
 * loop, so that a signal is heard while nobody reads them.
 *
 * The descriptor's flags are left alone: others may share it. What it does not take at once
 * waits here; who feeds the sink stops while it is full. */
#pragma once

#include "buf.h"
#include "loop.h"

struct sink {
    struct loop *loop;
    int fd;             /* borrowed */
    struct loop_io *io; /* NULL: not written to yet, or it never blocks */
    bool never_blocks;  /* a file */
    struct buf waiting;
    size_t written; /* of `waiting` */
    /* Once after it was full: all is written (0), or -errno. */
    void (*drained)(void *ctx, int error);
    void *ctx;
};

/* The members loop, fd, drained and ctx are set before; all else is zero. */
int sink_write(struct sink *sink, const void *data, size_t size); /* 0 or -errno */
bool sink_is_full(const struct sink *sink);
void sink_done(struct sink *sink); /* what waits is lost */
