/* whole_input.c - see whole_input.h. */
#include "whole_input.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "sandbox_call.h"
#include "tables.h"

#define CHUNK_BYTES 65536u

struct whole_input {
    struct buf *to;
    bool at_end;
    int error; /* -errno; -EFBIG: beyond the limit */
};

/* What one read gives: a pipe that polls as readable does not block. */
static void on_readable(void *ctx, uint32_t events)
{
    static uint8_t chunk[CHUNK_BYTES];
    struct whole_input *input = ctx;
    ssize_t size = read(STDIN_FILENO, chunk, sizeof(chunk));

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size < 0)
        input->error = -errno;
    else if (size == 0)
        input->at_end = true;
    else if (input->to->size + (size_t)size > LIMIT_INLINE_BYTES)
        input->error = -EFBIG;
    else
        input->error = buf_append(input->to, chunk, (size_t)size);
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
    struct whole_input input = { .to = to };
    enum client_outcome outcome = CLIENT_ANSWERED;
    _cleanup_(loop_io_freep)
    struct loop_io *io = NULL;
    int result = loop_io_new(client->loop, STDIN_FILENO, EPOLLIN, on_readable, &input, &io);

    if (result < 0 && result != -EPERM)
        return sandbox_complain("stdin: %s", strerror(-result));
    while (!io && !is_over(&input)) /* a file: it never blocks */
        on_readable(&input, EPOLLIN);
    if (io)
        outcome = client_wait_for(client, is_over, &input, deadline_ms, false);
    return conclude(client, &input, outcome, wait_ms);
}
