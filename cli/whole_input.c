/* whole_input.c - see whole_input.h. */
#include "whole_input.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "sandbox_call.h"
#include "source.h"
#include "tables.h"

struct whole_input {
    const struct client *client;
    struct buf *to;
    bool at_end;
    int error; /* -errno; -EFBIG: beyond the limit */
};

static bool on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct whole_input *input = ctx;

    if (input->to->size + size > LIMIT_INLINE_BYTES)
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

static int conclude(const struct client *client, const struct whole_input *input,
                    enum client_outcome outcome, uint64_t wait_ms)
{
    if (outcome == CLIENT_TIMED_OUT)
        return sandbox_complain("stdin did not end within %" PRIu64 " ms", wait_ms);
    if (outcome != CLIENT_ANSWERED)
        return sandbox_outcome(client, NULL, outcome, "sandbox::exec", wait_ms);
    if (input->error == -EFBIG)
        return sandbox_complain("stdin is larger than %d MiB, and this adapter takes no more; "
                                "`iii sandbox upload` moves files of any size",
                                LIMIT_INLINE_BYTES / 1024 / 1024);
    if (input->error < 0)
        return sandbox_complain("stdin: %s", strerror(-input->error));
    return EXIT_CODE_DONE;
}

int whole_input_read(struct client *client, uint64_t wait_ms, struct buf *to)
{
    uint64_t deadline_ms = client_now_ms(client) + wait_ms;
    struct whole_input input = { .client = client, .to = to };
    struct source source = {
        .loop = client->loop,
        .fd = STDIN_FILENO,
        .data = on_data,
        .ended = on_ended,
        .ctx = &input,
    };
    enum client_outcome outcome = CLIENT_ANSWERED;
    int result = source_begin(&source);

    if (result < 0)
        return sandbox_complain("stdin: %s", strerror(-result));
    if (!is_over(&input))
        outcome = client_wait_for(client, is_over, &input, deadline_ms, false);
    source_done(&source);
    return conclude(client, &input, outcome, wait_ms);
}
