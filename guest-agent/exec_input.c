/* exec_input.c - the program's standard input: as fast as it reads, and nothing lost by one
 * that does not. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "exec_state.h"
#include "frames.h"

#define CREDIT_STEP_BYTES (64u * 1024)

static void input_close(struct exec_input *input)
{
    loop_io_free(take_ptr(input->io));
    closep(&input->fd);
    buf_done(&input->waiting);
}

/* Bytes were used up: the host may send as many again. Told in steps, so that a short input
 * costs no frame. */
static void input_took(struct exec_input *input, size_t size)
{
    struct serve *serve = input->exec->call.serve;

    input->taken += size;
    if (input->taken < CREDIT_STEP_BYTES || input->ended)
        return;
    input->window += input->taken;
    serve_return_slots(serve, true);
    serve_queued(serve,
                 frames_credit(serve_queue(serve), input->exec->call.id, 0, input->taken));
    input->taken = 0;
}

static void input_pump(struct exec_input *input)
{
    while (input->waiting.size > 0) {
        ssize_t size = write(input->fd, input->waiting.data, input->waiting.size);

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EAGAIN) {
            (void)loop_io_set_events(input->io, EPOLLOUT);
            return;
        }
        if (size < 0) { /* EPIPE: it does not read any more, which is its right */
            const size_t unread = input->waiting.size;

            input_close(input);
            input_took(input, unread);
            return;
        }
        buf_consume(&input->waiting, (size_t)size);
        input_took(input, (size_t)size);
    }
    if (input->ended)
        input_close(input);
    else
        (void)loop_io_set_events(input->io, 0);
}

static void input_ready(void *ctx, uint32_t events)
{
    (void)events;
    input_pump(ctx);
}

/* Room for bytes of the host; NULL with 0: they are not wanted any more. */
static int input_take(struct exec_input *input, size_t size, uint8_t **ret_room)
{
    *ret_room = NULL;
    if (size > input->window || input->ended)
        return -EPROTO;
    input->window -= size;
    if (input->fd < 0) {
        input_took(input, size);
        return 0;
    }
    *ret_room = buf_reserve(&input->waiting, size);
    return *ret_room ? 0 : -ENOMEM;
}

int exec_input_data(struct exec_input *input, struct span bytes)
{
    uint8_t *room;
    int result = input_take(input, bytes.size, &room);

    if (result < 0 || !room)
        return result;
    memcpy(room, bytes.data, bytes.size);
    input->waiting.size += bytes.size;
    input_pump(input);
    return 0;
}

int exec_input_slot(struct exec_input *input, unsigned slot, size_t size)
{
    struct mailbox *mailbox = &input->exec->call.serve->mailbox;
    uint8_t *room;
    int result = input_take(input, size, &room);

    if (result == 0 && room)
        result = mailbox_get(mailbox, slot, size, room, size);
    if (result < 0 || !room)
        return result;
    input->waiting.size += size;
    input_pump(input);
    return 0;
}

void exec_input_end(struct exec_input *input)
{
    input->ended = true;
    if (input->fd >= 0)
        input_pump(input);
}

int exec_input_init(struct exec_input *input, struct exec *exec, int *ret_their_fd)
{
    int pair[2];

    *input = (struct exec_input){ .exec = exec, .fd = -1, .window = AGENT_WINDOW_BYTES };
    if (pipe2(pair, O_CLOEXEC) < 0)
        return -errno;
    *ret_their_fd = pair[0];
    input->fd = pair[1];
    if (fcntl(pair[1], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return loop_io_new(exec->call.serve->loop, pair[1], 0, input_ready, input, &input->io);
}

void exec_input_done(struct exec_input *input)
{
    input_close(input);
}
