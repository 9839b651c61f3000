/* link.c - see link.h. A virtio port takes at most 32 KiB a write and gives EAGAIN when its
 * queue is full, so short writes are the normal case. */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "buf.h"

#define READ_BYTES (128u * 1024)
#define KEPT_CAPACITY_BYTES (1u * 1024 * 1024) /* a larger buffer is given back when empty */

struct link {
    struct loop *loop;
    int fd;
    struct loop_io *io;
    const struct link_events *events;
    void *ctx;
    struct loop_notice flush;
    struct buf in;
    struct buf out;
    size_t sent;   /* of out, from its front */
    bool was_full; /* producers wait for `drained` */
    bool closed;   /* `closed` was called: nothing is read or written any more */
};

static void link_close(struct link *link, const char *reason)
{
    if (link->closed)
        return;
    link->closed = true;
    loop_io_free(take_ptr(link->io));
    link->events->closed(link->ctx, reason);
}

static void buf_give_back(struct buf *buf)
{
    const size_t limit = buf->limit;

    if (buf->capacity <= KEPT_CAPACITY_BYTES) {
        buf_clear(buf);
        return;
    }
    buf_done(buf);
    buf->limit = limit;
}

/* Receiving. */

/* Hands over every whole frame that is in the buffer. */
static void link_dispatch(struct link *link)
{
    size_t at = 0;

    while (!link->closed && link->in.size - at >= AGENT_FRAME_PREFIX_BYTES) {
        const uint8_t *data = link->in.data + at + AGENT_FRAME_PREFIX_BYTES;
        const size_t size = agent_frame_size(link->in.data + at);
        struct agent_frame frame;
        const char *reason;

        if (size > AGENT_FRAME_MAX_BYTES) {
            link_close(link, "the host sent a frame over the limit");
            return;
        }
        if (link->in.size - at - AGENT_FRAME_PREFIX_BYTES < size)
            break;
        at += AGENT_FRAME_PREFIX_BYTES + size;
        if (agent_frame_decode(data, size, &frame, &reason) < 0)
            link_close(link, reason);
        else if (link->events->frame(link->ctx, &frame) < 0)
            link_close(link, "the host sent a frame that may not come now");
    }
    buf_consume(&link->in, at);
    if (link->in.size == 0)
        buf_give_back(&link->in);
}

static void link_receive(struct link *link)
{
    uint8_t *room = buf_reserve(&link->in, READ_BYTES);
    ssize_t size;

    if (!room) {
        link_close(link, "no memory for the host's frame");
        return;
    }
    size = read(link->fd, room, READ_BYTES);
    if (size < 0) {
        if (errno != EAGAIN && errno != EINTR)
            link_close(link, "reading from the channel failed");
        return;
    }
    if (size == 0) {
        link_close(link, "the host closed the channel");
        return;
    }
    link->in.size += (size_t)size;
    link_dispatch(link);
}

/* Sending. */

static int link_write_some(struct link *link)
{
    while (link->sent < link->out.size) {
        ssize_t size = write(link->fd, link->out.data + link->sent,
                             link->out.size - link->sent);

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size < 0 ? -errno : -EIO;
        link->sent += (size_t)size;
    }
    link->sent = 0;
    buf_give_back(&link->out);
    return 0;
}

static void link_send(void *ctx)
{
    struct link *link = ctx;
    int result;

    if (link->closed)
        return;
    result = link_write_some(link);
    if (result < 0 && result != -EAGAIN) {
        link_close(link, "writing to the channel failed");
        return;
    }
    (void)loop_io_set_events(link->io, result < 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    if (result < 0 && link->sent > KEPT_CAPACITY_BYTES) {
        buf_consume(&link->out, link->sent);
        link->sent = 0;
    }
    if (result == 0 && link->was_full) {
        link->was_full = false;
        link->events->drained(link->ctx);
    }
}

static void link_ready(void *ctx, uint32_t events)
{
    struct link *link = ctx;

    if (events & EPOLLOUT)
        link_send(link);
    if (!link->closed && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        link_receive(link);
}

struct buf *link_queue(struct link *link)
{
    return &link->out;
}

int link_append(struct link *link, struct buf *frames)
{
    struct buf *out = &link->out, old = *out;
    int result = 0;

    if (out->size > 0 || frames->size > out->limit) {
        result = buf_append(out, frames->data, frames->size);
    } else {
        out->data = frames->data;
        out->size = frames->size;
        out->capacity = frames->capacity;
        frames->data = old.data;
        frames->capacity = old.capacity;
    }
    frames->size = 0;
    return result;
}

void link_flush(struct link *link)
{
    if (!link->closed)
        loop_defer(link->loop, &link->flush);
}

bool link_full(struct link *link)
{
    if (link->out.size - link->sent < LINK_FULL_BYTES)
        return false;
    link->was_full = true;
    return true;
}

void link_finish(struct link *link, int timeout_ms)
{
    struct pollfd port = { .fd = link->fd, .events = POLLOUT };

    while (!link->closed && link_write_some(link) == -EAGAIN) {
        if (poll(&port, 1, timeout_ms) <= 0)
            return;
    }
}

int link_new(struct loop *loop, int own_fd, const struct link_events *events, void *ctx,
             struct link **ret_link)
{
    _cleanup_close_ int fd = own_fd;
    _cleanup_(link_freep)
    struct link *link = calloc(1, sizeof(*link));
    int flags = fcntl(fd, F_GETFL);
    int result;

    if (!link)
        return -ENOMEM;
    *link = (struct link){
        .loop = loop,
        .fd = -1,
        .events = events,
        .ctx = ctx,
        .in.limit = AGENT_FRAME_PREFIX_BYTES + AGENT_FRAME_MAX_BYTES + READ_BYTES,
        .out.limit = LINK_QUEUE_MAX_BYTES,
    };
    loop_notice_init(&link->flush, link_send, link);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return -errno;
    result = loop_io_new(loop, fd, EPOLLIN, link_ready, link, &link->io);
    if (result < 0)
        return result;
    link->fd = take_fd(&fd);
    *ret_link = take_ptr(link);
    return 0;
}

void link_free(struct link *link)
{
    if (!link)
        return;
    loop_notice_cancel(link->loop, &link->flush);
    loop_io_free(link->io);
    closep(&link->fd);
    buf_done(&link->in);
    buf_done(&link->out);
    free(link);
}
