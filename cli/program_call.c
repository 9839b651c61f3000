/* program_call.c - see program_call.h. */
#include "program_call.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "live_program.h"
#include "program_output.h"
#include "sandbox_call.h"
#include "tables.h"
#include "whole_input.h"

/* A terminal is left to those who start us from one, unless they say otherwise. */
static bool has_input(const struct program_call *program)
{
    return fcntl(STDIN_FILENO, F_GETFL) >= 0 && (program->input || !isatty(STDIN_FILENO));
}

/* Our stdin as a whole, for an adapter that takes it in no other way. */
static int read_input(struct client *client, uint64_t wait_ms, struct buf *to)
{
    const struct whole_input_spec spec = {
        .fd = STDIN_FILENO,
        .max_bytes = LIMIT_INLINE_BYTES,
        .wait_ms = wait_ms,
    };
    int error;
    enum client_outcome outcome = whole_input_read(client, &spec, to, &error);

    if (outcome == CLIENT_TIMED_OUT)
        return sandbox_complain("stdin did not end within %" PRIu64 " ms", wait_ms);
    if (outcome != CLIENT_ANSWERED)
        return sandbox_outcome(client, NULL, outcome, "sandbox::exec", wait_ms);
    if (error == -EFBIG)
        return sandbox_complain("stdin is larger than %d MiB, and this adapter takes no more; "
                                "`iii sandbox upload` moves files of any size",
                                LIMIT_INLINE_BYTES / 1024 / 1024);
    if (error < 0)
        return sandbox_complain("stdin: %s", strerror(-error));
    return EXIT_CODE_DONE;
}

static int put_input(struct client *client, const struct program_call *program)
{
    _cleanup_(buf_done)
    struct buf input = { 0 };
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int code = read_input(client, program->wait_ms, &input);

    if (code != EXIT_CODE_DONE)
        return code;
    if (base64_encode(&text, input.data, input.size) < 0 || !buf_text(&text))
        return sandbox_complain("no memory");
    payload_text(program->payload, "stdin", buf_text(&text));
    return EXIT_CODE_DONE;
}

static int run_to_end(struct client *client, const struct program_call *program)
{
    struct client_request request = { .function = "sandbox::exec" };
    enum client_outcome outcome = CLIENT_LOST;
    struct client_call call = { 0 };
    int code;

    if (has_input(program)) {
        code = put_input(client, program);
        if (code != EXIT_CODE_DONE)
            return code;
    }
    if (payload_end(program->payload, &request.payload) == 0)
        outcome = client_run(client, &call, &request, client_now_ms(client) + program->wait_ms);
    code = outcome == CLIENT_ANSWERED
               ? program_output(client, &call)
               : sandbox_outcome(client, &call, outcome, request.function, program->wait_ms);
    client_call_done(&call);
    return code;
}

int program_run(struct client *client, const struct program_call *call)
{
    const struct live_program_spec live = {
        .payload = call->payload,
        .input = has_input(call),
        .wait_ms = call->wait_ms,
    };

    return live_program_possible(client) ? live_program_run(client, &live)
                                         : run_to_end(client, call);
}
