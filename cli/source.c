/* source.c - see source.h. */
#include "source.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

static void source_end(struct source *source, int error)
{
    source_done(source);
    source->ended(source->ctx, error);
}

/* True: there may be more at once. */
static bool source_read(struct source *source)
{
    static uint8_t chunk[SOURCE_CHUNK_BYTES];
    ssize_t size = read(source->fd, chunk, sizeof(chunk));

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (size <= 0) {
        source_end(source, size < 0 ? -errno : 0);
        return false;
    }
    source->paused = !source->data(source->ctx, chunk, (size_t)size);
    return true;
}

static void source_want(struct source *source)
{
    int result = loop_io_set_events(source->io, source->paused ? 0 : EPOLLIN);

    if (result < 0)
        source_end(source, result);
}

static void source_pump(struct source *source)
{
    bool more = true;

    while (more && !source->over && !source->paused)
        more = source_read(source) && !source->io;
    if (source->io)
        source_want(source);
}

static void on_readable(void *ctx, uint32_t events)
{
    source_pump(ctx);
}

int source_begin(struct source *source)
{
    int result = loop_io_new(source->loop, source->fd, EPOLLIN, on_readable, source,
                             &source->io);

    if (result == -EPERM) { /* what epoll says of a file */
        source_pump(source);
        return 0;
    }
    return result;
}

void source_resume(struct source *source)
{
    if (!source->paused || source->over)
        return;
    source->paused = false;
    if (source->io) /* a pipe may be empty now: it says itself when it is not */
        source_want(source);
    else
        source_pump(source);
}

void source_done(struct source *source)
{
    source->over = true;
    loop_io_free(take_ptr(source->io));
}
