/* live_input.c - see live_input.h. */
#include "live_input.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

static void input_want(struct live_input *input, bool wanted)
{
    int result = input->io ? loop_io_set_events(input->io, wanted ? EPOLLIN : 0) : 0;

    if (result < 0)
        transfer_fail(&input->transfer, "stdin: %s", strerror(-result));
}

static void input_end(struct live_input *input)
{
    input->at_end = true;
    input_want(input, false);
    web_socket_close(input->transfer.socket, WEBSOCKET_CLOSE_NORMAL, "stream_complete", 0);
}

/* Dropping TCP is an abort: half an input must not pass for a whole one. */
static void input_break(struct live_input *input, int error)
{
    transfer_fail(&input->transfer, "stdin: %s", strerror(error));
    input->at_end = true;
    input_want(input, false);
    web_socket_free(take_ptr(input->transfer.socket));
}

/* Sends one chunk; false: nothing more for now. */
static bool input_chunk(struct live_input *input)
{
    static uint8_t chunk[TRANSFER_CHUNK_BYTES];
    ssize_t size = read(STDIN_FILENO, chunk, sizeof(chunk));
    int result;

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (size < 0) {
        input_break(input, errno);
        return false;
    }
    if (size == 0) {
        input_end(input);
        return false;
    }
    result = web_socket_send(input->transfer.socket, WEBSOCKET_BINARY, chunk, (size_t)size);
    if (result < 0)
        input_break(input, -result);
    return result == 0;
}

static void input_pump(struct live_input *input)
{
    while (!input->at_end && input->transfer.socket &&
           !web_socket_is_full(input->transfer.socket)) {
        if (!input_chunk(input) || input->io)
            break;
    }
    if (!input->at_end && input->transfer.socket)
        input_want(input, !web_socket_is_full(input->transfer.socket));
}

static void on_input(void *ctx, uint32_t events)
{
    input_pump(ctx);
}

static void on_opened(void *ctx)
{
    struct live_input *input = ctx;
    int result = loop_io_new(input->transfer.client->loop, STDIN_FILENO, 0, on_input, input,
                             &input->io);

    if (result == 0)
        result = loop_io_set_events(input->io, EPOLLIN);
    if (result == -EPERM)
        loop_io_free(take_ptr(input->io)); /* a file: it never blocks */
    else if (result < 0)
        transfer_fail(&input->transfer, "stdin: %s", strerror(-result));
    if (!input->io)
        input_pump(input);
}

/* A pipe may be empty now: it says itself when it is not. */
static void on_drained(void *ctx)
{
    struct live_input *input = ctx;

    if (!input->io)
        input_pump(input);
    else if (!input->at_end)
        input_want(input, true);
}

static void on_message(void *ctx, bool is_text, const uint8_t *data, size_t size)
{
}

/* The program has ended, or does not read; how it went its result tells. */
static void on_closed(void *ctx, unsigned code, const char *why)
{
    struct live_input *input = ctx;

    input->at_end = true;
    input_want(input, false);
    web_socket_free(take_ptr(input->transfer.socket));
}

int live_input_begin(struct live_input *input, struct span writer)
{
    static const struct web_socket_events events = {
        .opened = on_opened,
        .message = on_message,
        .drained = on_drained,
        .closed = on_closed,
    };

    return transfer_open(&input->transfer, writer, true, &events, input);
}

void live_input_done(struct live_input *input)
{
    loop_io_free(take_ptr(input->io));
    web_socket_free(take_ptr(input->transfer.socket));
}
