/* sandbox_stop.c - `iii sandbox stop`. */
#include "sandbox.h"
#include "sandbox_call.h"

static int run_stop(const struct command_line *line)
{
    const char *id = line->rest.words[0];
    struct payload payload = { 0 };
    struct client_call call = { 0 };
    int code;

    payload_text(&payload, "sandbox_id", id);
    code = sandbox_call(line->client, &call, "sandbox::stop", &payload,
                        SANDBOX_CALL_TIMEOUT_MS);
    if (code == EXIT_CODE_DONE) {
        code = sandbox_printf("stopped %s\n", id);
        client_close(line->client);
    }
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

const struct command command_sandbox_stop = {
    .name = "stop",
    .path = "iii sandbox stop",
    .text = "Stop a sandbox and discard its changes.",
    .words = { { .name = "ID", .kind = WORD_SANDBOX } },
    COMMAND_COMMON_OPTIONS,
    .run = run_stop,
};
