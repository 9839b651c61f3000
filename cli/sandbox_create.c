/* sandbox_create.c - `iii sandbox create`. */
#include <stdio.h>

#include "json_scan.h"
#include "output.h"
#include "progress.h"
#include "sandbox.h"
#include "sandbox_call.h"

struct create_options {
    struct target_options target;
    struct option_number cpus;
    struct option_number memory_mb;
    struct option_number idle_timeout_ms;
    const char *name;
    bool network;
    struct option_texts env;
    bool help;
};

static void write_payload(const struct create_options *options, const char *image,
                          struct payload *payload)
{
    payload_text(payload, "image", image);
    if (options->cpus.given)
        payload_number(payload, "cpus", options->cpus.value);
    if (options->memory_mb.given)
        payload_number(payload, "memory_mb", options->memory_mb.value);
    if (options->idle_timeout_ms.given)
        payload_number(payload, "idle_timeout_secs",
                       (options->idle_timeout_ms.value + 999) / 1000);
    if (options->name)
        payload_text(payload, "name", options->name);
    if (options->network)
        payload_bool(payload, "network", true);
    sandbox_put_env(payload, &options->env);
}

static int print_id(const struct client_call *call)
{
    _cleanup_(buf_done)
    struct buf id = { 0 };
    int result = output_member_text(sandbox_result(call), "sandbox_id", &id);

    if (result < 0 || !buf_text(&id))
        return sandbox_complain("no memory");
    if (printf("%s\n", buf_text(&id)) < 0 || fflush(stdout) != 0)
        return sandbox_complain("cannot write to stdout");
    return EXIT_CODE_DONE;
}

static int create(struct client *client, const struct create_options *options,
                  const char *image)
{
    struct payload payload = { 0 };
    struct progress progress;
    struct client_call call = { .progress = progress_event, .progress_ctx = &progress };
    int code;

    write_payload(options, image, &payload);
    progress_begin(&progress, client->loop, "creating");
    code = sandbox_call(client, &call, "sandbox::create", &payload, SANDBOX_CREATE_TIMEOUT_MS);
    progress_end(&progress, code == EXIT_CODE_DONE ? "sandbox ready" : NULL);
    if (code == EXIT_CODE_DONE) {
        code = print_id(&call);
        client_close(client);
    }
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

static int run_create(const struct command *self, int argc, char **argv)
{
    struct create_options options = { .target = TARGET_STANDARD };
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
        return command_misused(self, "wants one IMAGE");
    code = sandbox_check_env(self, &options.env);
    if (code != EXIT_CODE_DONE)
        return code;
    if (command_client(&client, &options.target) < 0)
        return sandbox_complain("no memory");
    code = create(&client, &options, rest.words[0]);
    client_done(&client);
    return code;
}

#define ROW(member, ...) .offset = offsetof(struct create_options, member), __VA_ARGS__
static const struct option_row rows[] = {
    { .name = "cpus",
      .kind = OPTION_NUMBER,
      .value = "N",
      .min = 1,
      .max = UINT32_MAX,
      ROW(cpus, .text = "virtual processors (the adapter's default)") },
    { .name = "memory",
      .kind = OPTION_NUMBER,
      .value = "MB",
      .min = 1,
      .max = UINT32_MAX,
      ROW(memory_mb, .text = "memory in MiB (the adapter's default)") },
    { .name = "idle-timeout",
      .kind = OPTION_DURATION,
      .value = "D",
      .max = UINT64_MAX - 999,
      ROW(idle_timeout_ms, .text = "idle time after which it is stopped; 90, 90s, 5m") },
    { .name = "name", .kind = OPTION_TEXT, .value = "N", ROW(name, .text = "a label") },
    { .name = "network", .kind = OPTION_FLAG, ROW(network, .text = "outgoing network access") },
    { .name = "env",
      .letter = 'e',
      .kind = OPTION_TEXTS,
      .value = "K=V",
      ROW(env, .text = "environment of every exec; may be repeated") },
    TARGET_OPTIONS(struct create_options),
    HELP_OPTION(struct create_options),
};

const struct command command_sandbox_create = {
    .name = "create",
    .path = "iii sandbox create",
    .synopsis = "IMAGE [OPTIONS]",
    .text = "Boot a sandbox and print its id.",
    .options = { rows, ARRAY_SIZE(rows) },
    .run = run_create,
};
