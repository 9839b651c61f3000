/* sink.c - see sink.h. A pipe or terminal that polls as writable takes a page without blocking,
 * so no write is larger. */
#include "sink.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "output.h"

#define PIECE_BYTES 4096u

static bool is_writable(const struct sink *sink)
{
    struct pollfd poll_fd = { .fd = sink->fd, .events = POLLOUT };

    return poll(&poll_fd, 1, 0) > 0; /* with an error too: the write tells it */
}

/* The bytes written before it would block; -errno. */
static ssize_t write_some(const struct sink *sink, const uint8_t *data, size_t size)
{
    size_t done = 0;

    while (done < size && is_writable(sink)) {
        size_t piece = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;
        ssize_t written = write(sink->fd, data + done, piece);

        if (written < 0 && errno == EAGAIN)
            break;
        if (written < 0 && errno != EINTR)
            return -errno;
        done += written > 0 ? (size_t)written : 0;
    }
    return (ssize_t)done;
}

static void finish(struct sink *sink, int error)
{
    (void)loop_io_set_events(sink->io, 0); /* nothing is wanted of it any more */
    buf_done(&sink->waiting);
    sink->written = 0;
    sink->drained(sink->ctx, error);
}

static void on_writable(void *ctx, uint32_t events)
{
    struct sink *sink = ctx;
    ssize_t written = write_some(sink, sink->waiting.data + sink->written,
                                 sink->waiting.size - sink->written);

    if (written < 0) {
        finish(sink, (int)written);
        return;
    }
    sink->written += (size_t)written;
    if (sink->written == sink->waiting.size)
        finish(sink, 0);
}

/* Whether it is a file, or something like it: known at the first byte. */
static int learn_kind(struct sink *sink)
{
    int result;

    if (sink->io || sink->never_blocks)
        return 0;
    result = loop_io_new(sink->loop, sink->fd, EPOLLOUT, on_writable, sink, &sink->io);
    if (result == -EPERM) {
        sink->never_blocks = true;
        return 0;
    }
    return result < 0 ? result : loop_io_set_events(sink->io, 0);
}

int sink_write(struct sink *sink, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    ssize_t written = 0;
    int result = learn_kind(sink);

    if (result < 0)
        return result;
    if (sink->never_blocks)
        return output_write(sink->fd, data, size);
    if (!sink_is_full(sink))
        written = write_some(sink, bytes, size);
    if (written < 0)
        return (int)written;
    if ((size_t)written == size)
        return 0;
    result = buf_append(&sink->waiting, bytes + written, size - (size_t)written);
    return result == 0 ? loop_io_set_events(sink->io, EPOLLOUT) : result;
}

bool sink_is_full(const struct sink *sink)
{
    return sink->waiting.size > 0;
}

void sink_done(struct sink *sink)
{
    loop_io_free(take_ptr(sink->io));
    buf_done(&sink->waiting);
    sink->written = 0;
}
