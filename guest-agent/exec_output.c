/* exec_output.c - the program's pipes, read against the host's window. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "exec_state.h"
#include "frames.h"
#include "pace.h"
#include "sink.h"

/* The program ended and the time for more has passed. */
static bool output_overdue(const struct exec_output *output)
{
    return output->exec->state == EXEC_DRAINING && !loop_timer_armed(output->exec->drain);
}

/* May it send now, and how much? */
static size_t output_room(struct exec_output *output)
{
    uint64_t room = output->window;

    if (output_overdue(output) && output->owed < room)
        room = output->owed;
    return serve_full(output->exec->call.serve) ? 0 : (size_t)room;
}

/* At most ROOM bytes into a DATA frame. How many, or as read(2) tells. */
static ssize_t output_read_data(struct exec_output *output, size_t room)
{
    struct serve *serve = output->exec->call.serve;
    struct buf *queue = serve_queue(serve);
    size_t start;
    ssize_t size;
    int result;

    if (room > AGENT_DATA_MAX_BYTES)
        room = AGENT_DATA_MAX_BYTES;
    result = agent_frame_data_begin(output->exec->call.id, output->stream, room, queue, &start);
    if (result < 0) {
        serve_queued(serve, result);
        errno = EAGAIN;
        return -1;
    }
    size = read(output->fd, queue->data + queue->size, room);
    agent_frame_data_finish(queue, start, size > 0 ? (size_t)size : 0);
    return size;
}

/* SIZE bytes at DATA in as many frames as they need. 0 or -errno. */
static int output_queue_data(struct exec_output *output, const uint8_t *data, size_t size)
{
    struct buf *queue = serve_queue(output->exec->call.serve);
    int result = 0;

    for (size_t at = 0, part; result == 0 && at < size; at += part) {
        part = size - at < AGENT_DATA_MAX_BYTES ? size - at : AGENT_DATA_MAX_BYTES;
        result = frames_data(queue, output->exec->call.id, output->stream, data + at, part);
    }
    return result;
}

/* How much of ROOM can be had at once. 0: it is not worth a look. */
static size_t output_waiting(struct exec_output *output, size_t room)
{
    int waiting = 0;

    if (output->copied_reads > 0) {
        output->copied_reads--;
        return 0;
    }
    if (ioctl(output->fd, FIONREAD, &waiting) < 0)
        return 0;
    return (size_t)waiting < room ? (size_t)waiting : room;
}

/* As read(2), of at most ROOM bytes, of which the first RET_PUT are in SLOT, the others at
 * DATA.
 */
static ssize_t output_fill_slot(struct exec_output *output, size_t room, int slot,
                                uint8_t *data, size_t *ret_put)
{
    struct mailbox *mailbox = &output->exec->call.serve->mailbox;
    size_t put = 0;
    ssize_t size = mailbox_put_pipe(mailbox, slot, output->fd, output_waiting(output, room),
                                    &put);

    if (size < 0) {
        errno = EIO;
        return -1;
    }
    if (size == 0)
        size = read(output->fd, data, room);
    else if (put == 0)
        output->copied_reads = EXEC_COPIED_READS;
    if (put == 0 && size >= (ssize_t)AGENT_MAILBOX_MIN_BYTES &&
        mailbox_put(mailbox, slot, data, (size_t)size) == 0)
        put = (size_t)size;
    *ret_put = put;
    return size;
}

/* At most ROOM bytes into SLOT, or, when they are few, into DATA. As read(2) tells. */
static ssize_t output_read_slot(struct exec_output *output, size_t room, int slot,
                                uint8_t *data)
{
    struct serve *serve = output->exec->call.serve;
    size_t put = 0;
    ssize_t size;

    if (room > AGENT_MAILBOX_SLOT_BYTES)
        room = AGENT_MAILBOX_SLOT_BYTES;
    size = output_fill_slot(output, room, slot, data, &put);
    if (put > 0)
        serve_queued(serve, frames_slot(serve_queue(serve), output->exec->call.id,
                                        output->stream, (unsigned)slot, put));
    else
        mailbox_slot_give(&serve->mailbox, slot);
    if (size > (ssize_t)put)
        serve_queued(serve, output_queue_data(output, data, (size_t)size - put));
    return size;
}

/* One read; false: nothing more now. */
static bool output_read(struct exec_output *output)
{
    struct serve *serve = output->exec->call.serve;
    const size_t room = output_room(output);
    uint8_t *bounce = NULL;
    int slot = -1;
    ssize_t size;

    if (room == 0)
        return false;
    if (room >= AGENT_MAILBOX_MIN_BYTES && mailbox_on(&serve->mailbox))
        bounce = mailbox_bounce(&serve->mailbox);
    if (bounce)
        slot = mailbox_slot_take(&serve->mailbox);
    size = slot < 0 ? output_read_data(output, room)
                    : output_read_slot(output, room, slot, bounce);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (size <= 0) {
        loop_io_free(take_ptr(output->io));
        closep(&output->fd);
        exec_output_end(output);
        return false;
    }
    pace_set(size >= (ssize_t)AGENT_MAILBOX_MIN_BYTES ? PACE_BULK : PACE_PROMPT);
    output->window -= (uint64_t)size;
    output->owed -= (uint64_t)size < output->owed ? (uint64_t)size : output->owed;
    serve_queued(serve, 0);
    return true;
}

/* Ends it when the time is up and nothing is owed any more; else waits for what it needs. */
static void output_go_on(struct exec_output *output)
{
    if (output->ended)
        return;
    if (output_overdue(output) && output->owed == 0)
        exec_output_end(output);
    else
        (void)loop_io_set_events(output->io, output_room(output) > 0 ? EPOLLIN : 0);
}

void exec_output_pump(struct exec_output *output)
{
    if (output->ended)
        return;
    while (output_read(output))
        ;
    output_go_on(output);
}

/* A running program is read once a turn, so that one that floods does not starve the others. */
static void output_ready(void *ctx, uint32_t events)
{
    struct exec_output *output = ctx;

    (void)events;
    (void)output_read(output);
    output_go_on(output);
    exec_check(output->exec); /* may free it */
}

void exec_output_drain(struct exec_output *output)
{
    int size = 0;

    closep(&output->their_fd);
    exec_output_pump(output);
    if (!output->ended && ioctl(output->fd, FIONREAD, &size) == 0)
        output->owed = (uint64_t)size;
}

void exec_output_end(struct exec_output *output)
{
    if (output->ended)
        return;
    output->ended = true;
    pace_set(PACE_PROMPT); /* or another one that goes on in bulk says so again */
    loop_io_free(take_ptr(output->io));
    if (output->fd >= 0)
        sink_take(output->exec->call.serve->loop, take_fd(&output->fd));
}

int exec_output_init(struct exec_output *output, struct exec *exec, unsigned stream)
{
    int pair[2];

    *output = (struct exec_output){
        .exec = exec,
        .stream = stream,
        .fd = -1,
        .their_fd = -1,
        .window = AGENT_WINDOW_BYTES,
    };
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    output->fd = pair[0];
    output->their_fd = pair[1];
    if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    (void)fcntl(pair[0], F_SETPIPE_SZ, EXEC_PIPE_BYTES); /* or as the kernel makes it */
    return loop_io_new(exec->call.serve->loop, pair[0], EPOLLIN, output_ready, output,
                       &output->io);
}

void exec_output_done(struct exec_output *output)
{
    loop_io_free(take_ptr(output->io));
    closep(&output->fd);
    closep(&output->their_fd);
}
