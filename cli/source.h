/* source.h - bytes off a descriptor of ours (stdin, a pipe, a file) as they come, at the pace
 * of whoever takes them, without ever blocking the loop.
 *
 * The descriptor's flags are left alone: others may share it. A pipe is read once for each time
 * it says that it has something; a file, which never blocks, as long as it is wanted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "loop.h"

#define SOURCE_CHUNK_BYTES (64u * 1024)

struct source {
    struct loop *loop;
    int fd; /* borrowed */
    /* What one read gave, 1 to SOURCE_CHUNK_BYTES. False: nothing more is read before
     * source_resume(). */
    bool (*data)(void *ctx, const uint8_t *data, size_t size);
    /* Once, last: the end (0), or -errno. Not after source_done(). */
    void (*ended)(void *ctx, int error);
    void *ctx;
    struct loop_io *io; /* NULL: a file, or not begun */
    bool paused;
    bool over; /* nothing is read any more */
};

/* The members loop, fd, data, ended and ctx are set before; all else is zero. A file is read
 * from inside this call. 0 or -errno. */
int source_begin(struct source *source);
void source_resume(struct source *source);
void source_done(struct source *source); /* from a callback too; zero-initialised is fine */
