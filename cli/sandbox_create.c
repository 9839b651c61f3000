/* sandbox_create.c - `iii sandbox create`. */
#include "sandbox.h"
#include "sandbox_call.h"
#include "sandbox_life.h"

struct create_options {
    struct common_options common;
    struct option_number cpus;
    struct option_number memory_mb;
    struct option_number idle_timeout_ms;
    const char *name;
    bool network;
    struct option_texts env;
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

/* A sandbox whose id nobody gets is not left behind. */
static int print_id(struct sandbox_life *life)
{
    int code = sandbox_printf("%s\n", buf_text(&life->id));

    if (code != EXIT_CODE_DONE)
        sandbox_life_end(life);
    return code;
}

static int run_create(const struct command_line *line)
{
    struct sandbox_life life = { .client = line->client, .summary = "sandbox ready" };
    struct payload payload = { 0 };
    int code;

    write_payload(line->options, line->rest.words[0], &payload);
    code = sandbox_life_begin(&life, &payload);
    if (code == EXIT_CODE_DONE)
        code = print_id(&life);
    if (code == EXIT_CODE_DONE)
        client_close(line->client);
    sandbox_life_done(&life);
    payload_done(&payload);
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
      .kind = OPTION_PAIRS,
      .value = "K=V",
      ROW(env, .text = "environment of every exec; may be repeated") },
};

const struct command command_sandbox_create = {
    .name = "create",
    .path = "iii sandbox create",
    .text = "Boot a sandbox and print its id.",
    .words = { { .name = "IMAGE", .kind = WORD_IMAGE } },
    COMMAND_OPTIONS(struct create_options, rows),
    .run = run_create,
};
