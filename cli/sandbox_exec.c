/* sandbox_exec.c - `iii sandbox exec`. A signal drops the socket, which makes the router cancel
 * the call and the adapter kill the program's whole tree. */
#include "program_call.h"
#include "sandbox.h"
#include "sandbox_call.h"

struct exec_options {
    struct target_options target;
    struct option_number timeout_ms;
    struct option_texts env;
    bool input;
    bool help;
};

static int exec(struct client *client, const struct exec_options *options,
                const struct option_rest *rest)
{
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
    code = program_run(client, &call);
    if (code < 128 || client->interrupt.caught == 0)
        client_close(client);
    payload_done(&payload);
    return code;
}

static int run_exec(const struct command *self, int argc, char **argv)
{
    struct exec_options options = { .target = TARGET_STANDARD };
    struct option_rest rest;
    struct client client;
    int code = command_options(self, argc, argv, &options, &rest);

    if (code != EXIT_CODE_DONE)
        return code;
    if (options.help) {
        command_usage(self, 1);
        return EXIT_CODE_DONE;
    }
    if (rest.word_count != 1)
        return command_misused(self, "wants one ID before --");
    if (rest.command_count == 0)
        return command_misused(self, "wants -- and a command");
    code = sandbox_check_env(self, &options.env);
    if (code != EXIT_CODE_DONE)
        return code;
    if (command_client(&client, &options.target) < 0)
        return sandbox_complain("no memory");
    code = exec(&client, &options, &rest);
    client_done(&client);
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
      .kind = OPTION_TEXTS,
      .offset = offsetof(struct exec_options, env),
      .value = "K=V",
      .text = "environment of the program; may be repeated" },
    INPUT_OPTION(struct exec_options),
    TARGET_OPTIONS(struct exec_options),
    HELP_OPTION(struct exec_options),
};

const struct command command_sandbox_exec = {
    .name = "exec",
    .path = "iii sandbox exec",
    .synopsis = "ID [OPTIONS] -- CMD...",
    .text = "Run a program in a sandbox; its output and exit code are ours.",
    .options = { rows, ARRAY_SIZE(rows) },
    .run = run_exec,
};
