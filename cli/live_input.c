/* live_input.c - see live_input.h. */
#include "live_input.h"

#include <unistd.h>

/* Dropping TCP is an abort: half an input must not pass for a whole one. */
static void input_break(struct live_input *input, int error)
{
    transfer_fail(&input->transfer, "stdin: %s", strerror(-error));
    source_done(&input->source);
    web_socket_free(take_ptr(input->transfer.socket));
}

static bool on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct live_input *input = ctx;
    int result = web_socket_send(input->transfer.socket, WEBSOCKET_BINARY, data, size);

    if (result < 0)
        input_break(input, result);
    return result == 0 && !web_socket_is_full(input->transfer.socket);
}

static void on_ended(void *ctx, int error)
{
    struct live_input *input = ctx;

    if (error < 0)
        input_break(input, error);
    else if (!interrupt_is_near(&input->transfer.client->interrupt))
        web_socket_close(input->transfer.socket, WEBSOCKET_CLOSE_NORMAL, "stream_complete", 0);
}

static void on_opened(void *ctx)
{
    struct live_input *input = ctx;
    int result = source_begin(&input->source);

    if (result < 0)
        input_break(input, result);
}

static void on_drained(void *ctx)
{
    source_resume(&((struct live_input *)ctx)->source);
}

static void on_message(void *ctx, bool is_text, const uint8_t *data, size_t size)
{
}

/* The program has ended, or does not read; how it went its result tells. */
static void on_closed(void *ctx, unsigned code, const char *why)
{
    struct live_input *input = ctx;

    source_done(&input->source);
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

    input->source = (struct source){
        .loop = input->transfer.client->loop,
        .fd = STDIN_FILENO,
        .data = on_data,
        .ended = on_ended,
        .ctx = input,
    };
    return transfer_open(&input->transfer, writer, true, &events, input);
}

void live_input_done(struct live_input *input)
{
    source_done(&input->source);
    web_socket_free(take_ptr(input->transfer.socket));
}
