/* sandbox_exec.c - `iii sandbox exec`. A signal drops the socket, which makes the router cancel
 * the call and the adapter kill the program's whole tree. */
#include "program_call.h"
#include "sandbox.h"
#include "sandbox_call.h"

struct exec_options {
    struct common_options common;
    struct option_number timeout_ms;
    struct option_texts env;
    bool input;
};

static int run_exec(const struct command_line *line)
{
    const struct exec_options *options = line->options;
    const struct option_rest *rest = &line->rest;
    struct payload payload = { 0 };
    struct program_call call = {
        .payload = &payload,
        .input = options->input,
        .wait_ms = SANDBOX_EXEC_EXTRA_MS,
    };
    int code;

    call.wait_ms += options->timeout_ms.given ? options->timeout_ms.value
                                              : SANDBOX_EXEC_STANDARD_MS;
    payload_text(&payload, "sandbox_id", rest->words[0]);
    payload_texts(&payload, "argv", rest->command, rest->command_count);
    if (options->timeout_ms.given)
        payload_number(&payload, "timeout_ms", options->timeout_ms.value);
    sandbox_put_env(&payload, &options->env);
    code = program_run(line->client, &call);
    if (code < 128 || line->client->interrupt.caught == 0)
        client_close(line->client);
    payload_done(&payload);
    return code;
}

static const struct option_row rows[] = {
    { .name = "timeout",
      .kind = OPTION_DURATION,
      .offset = offsetof(struct exec_options, timeout_ms),
      .value = "D",
      .text = "time limit: 500ms, 30s, 5m; a bare number is seconds (5m)",
      .max = UINT32_MAX },
    { .name = "env",
      .letter = 'e',
      .kind = OPTION_PAIRS,
      .offset = offsetof(struct exec_options, env),
      .value = "K=V",
      .text = "environment of the program; may be repeated" },
    INPUT_OPTION(struct exec_options),
};

const struct command command_sandbox_exec = {
    .name = "exec",
    .path = "iii sandbox exec",
    .text = "Run a program in a sandbox; its output and exit code are ours.",
    .words = { { .name = "ID", .kind = WORD_SANDBOX } },
    .tail = TAIL_PROGRAM,
    COMMAND_OPTIONS(struct exec_options, rows),
    .run = run_exec,
};
