/* whole_input.c - see whole_input.h. */
#include "whole_input.h"

#include <errno.h>

#include "source.h"

struct whole_input {
    const struct client *client;
    const struct whole_input_spec *spec;
    struct buf *to;
    bool at_end;
    int error; /* -errno; -EFBIG: beyond the limit */
};

static bool on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct whole_input *input = ctx;

    if (input->to->size + size > input->spec->max_bytes)
        input->error = -EFBIG;
    else
        input->error = buf_append(input->to, data, size);
    return input->error == 0;
}

static void on_ended(void *ctx, int error)
{
    struct whole_input *input = ctx;

    if (error == 0 && interrupt_is_near(&input->client->interrupt))
        return; /* not the end of what was meant; the signal ends the wait */
    input->at_end = true;
    input->error = error;
}

static bool is_over(const void *ctx)
{
    const struct whole_input *input = ctx;

    return input->at_end || input->error < 0;
}

enum client_outcome whole_input_read(struct client *client, const struct whole_input_spec *spec,
                                     struct buf *to, int *ret_error)
{
    uint64_t deadline_ms = client_now_ms(client) + spec->wait_ms;
    struct whole_input input = { .client = client, .spec = spec, .to = to };
    struct source source = {
        .loop = client->loop,
        .fd = spec->fd,
        .data = on_data,
        .ended = on_ended,
        .ctx = &input,
    };
    enum client_outcome outcome = CLIENT_ANSWERED;
    int result = source_begin(&source);

    if (result == 0 && !is_over(&input))
        outcome = client_wait_for(client, is_over, &input, deadline_ms, false);
    source_done(&source);
    *ret_error = result < 0 ? result : input.error;
    return outcome;
}
