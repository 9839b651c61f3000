/* sink.c - see sink.h. */
#include "sink.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "log.h"

#define THROWN_AWAY_BYTES (64u * 1024)

struct sink {
    int fd;
    struct loop_io *io;
};

/* False: the pipe has ended. */
static bool sink_swallow(int fd)
{
    static uint8_t bytes[THROWN_AWAY_BYTES]; /* the loop's thread alone */
    ssize_t size = read(fd, bytes, sizeof(bytes));

    return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

static void sink_ready(void *ctx, uint32_t events)
{
    struct sink *sink = ctx;

    (void)events;
    if (sink_swallow(sink->fd))
        return;
    loop_io_free(sink->io);
    (void)close(sink->fd);
    free(sink);
}

void sink_take(struct loop *loop, int own_fd)
{
    _cleanup_close_ int fd = own_fd;
    struct sink *sink;

    if (!sink_swallow(fd))
        return;
    sink = calloc(1, sizeof(*sink));
    if (!sink || loop_io_new(loop, fd, EPOLLIN, sink_ready, sink, &sink->io) < 0) {
        log_event(LOG_ERROR, "sink_failed", log_int("fd", fd));
        free(sink);
        return;
    }
    sink->fd = take_fd(&fd);
}
