/* live_input.c - see live_input.h. */
#include "live_input.h"

#include <stdio.h>

void live_input_flush(struct live_input *input)
{
    size_t taken = 0;

    if (input->pending.size > 0)
        taken = program_write(input->program, input->pending.data, input->pending.size);
    buf_consume(&input->pending, taken);
    if (input->channel)
        channel_grant(input->channel, taken);
    if (input->at_end && input->pending.size == 0)
        program_end_input(input->program);
}

/* Half an input must not pass for a whole one. */
static void input_break(struct live_input *input, const char *reason)
{
    (void)snprintf(input->broken, sizeof(input->broken), "%s", reason); /* cut is fine */
    program_cancel(input->program);
}

static void on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct live_input *input = ctx;
    size_t taken = input->pending.size == 0 ? program_write(input->program, data, size) : 0;

    input->begun = true;
    channel_grant(input->channel, taken);
    if (buf_append(&input->pending, data + taken, size - taken) < 0)
        input_break(input, "no memory");
}

/* A channel that nobody ever wrote to is an empty input, however it ends. */
static void on_closed(void *ctx, bool clean, const char *reason)
{
    struct live_input *input = ctx;

    if (!clean && input->begun) {
        input_break(input, reason);
    } else {
        input->at_end = true;
        live_input_flush(input);
    }
    channel_free(take_ptr(input->channel));
}

int live_input_init(struct live_input *input, struct adapter *adapter,
                    const struct channel_ref *ref, struct program *program,
                    struct sandbox_error *err)
{
    static const struct channel_events events = { .data = on_data, .closed = on_closed };

    *input = (struct live_input){ .program = program };
    return channel_open_reader(adapter, ref, &events, input, &input->channel, err);
}

void live_input_done(struct live_input *input)
{
    if (input->channel)
        channel_abort(input->channel, S218, "the program has ended");
    channel_free(take_ptr(input->channel));
    buf_done(&input->pending);
}
