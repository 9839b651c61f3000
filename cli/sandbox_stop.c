/* sandbox_stop.c - `iii sandbox stop`. */
#include <stdio.h>

#include "sandbox.h"
#include "sandbox_call.h"

struct stop_options {
    struct target_options target;
    bool help;
};

static int stop(struct client *client, const char *id)
{
    struct payload payload = { 0 };
    struct client_call call = { 0 };
    int code;

    payload_text(&payload, "sandbox_id", id);
    code = sandbox_call(client, &call, "sandbox::stop", &payload, SANDBOX_CALL_TIMEOUT_MS);
    if (code == EXIT_CODE_DONE) {
        if (printf("stopped %s\n", id) < 0 || fflush(stdout) != 0)
            code = sandbox_complain("cannot write to stdout");
        client_close(client);
    }
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

static int run_stop(const struct command *self, int argc, char **argv)
{
    struct stop_options options = { .target = TARGET_STANDARD };
    struct option_rest rest;
    struct client client;
    int code = command_options(self, argc, argv, &options, &rest);

    if (code != EXIT_CODE_DONE)
        return code;
    if (options.help) {
        command_usage(self, 1);
        return EXIT_CODE_DONE;
    }
    if (rest.word_count != 1 || rest.has_command)
        return command_misused(self, "wants one ID");
    if (command_client(&client, &options.target) < 0)
        return sandbox_complain("no memory");
    code = stop(&client, rest.words[0]);
    client_done(&client);
    return code;
}

static const struct option_row rows[] = {
    TARGET_OPTIONS(struct stop_options),
    HELP_OPTION(struct stop_options),
};

const struct command command_sandbox_stop = {
    .name = "stop",
    .path = "iii sandbox stop",
    .synopsis = "ID [OPTIONS]",
    .text = "Stop a sandbox and discard its changes.",
    .options = { rows, ARRAY_SIZE(rows) },
    .run = run_stop,
};
