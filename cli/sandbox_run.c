/* sandbox_run.c - `iii sandbox run`: create, exec, stop, and the sandbox is stopped on every
 * way out. */
#include "program_call.h"
#include "sandbox.h"
#include "sandbox_call.h"
#include "sandbox_life.h"

#define RUN_IDLE_TIMEOUT_SECS 60 /* a killed run leaves no VM for longer */

struct run_options {
    struct common_options common;
    struct option_number cpus;
    struct option_number memory_mb;
    bool input;
};

static int create(struct sandbox_life *life, const struct command_line *line)
{
    const struct run_options *options = line->options;
    struct payload payload = { 0 };
    int code;

    payload_text(&payload, "image", line->rest.words[0]);
    payload_number(&payload, "cpus", options->cpus.value);
    payload_number(&payload, "memory_mb", options->memory_mb.value);
    payload_number(&payload, "idle_timeout_secs", RUN_IDLE_TIMEOUT_SECS);
    code = sandbox_life_begin(life, &payload);
    payload_done(&payload);
    return code;
}

/* The program's exit code, or ours. */
static int exec(struct sandbox_life *life, const struct command_line *line)
{
    const struct run_options *options = line->options;
    struct payload payload = { 0 };
    const struct program_call call = {
        .payload = &payload,
        .input = options->input,
        .wait_ms = SANDBOX_EXEC_STANDARD_MS + SANDBOX_EXEC_EXTRA_MS,
    };
    int code;

    payload_text(&payload, "sandbox_id", buf_text(&life->id));
    payload_texts(&payload, "argv", line->rest.command, line->rest.command_count);
    code = program_run(line->client, &call);
    payload_done(&payload);
    return code;
}

static int run_run(const struct command_line *line)
{
    struct sandbox_life life = {
        .client = line->client,
        .patience_ms = SANDBOX_LIFE_END_MS - SANDBOX_LIFE_FAREWELL_MS,
    };
    int code = create(&life, line);

    if (code == EXIT_CODE_DONE) {
        code = exec(&life, line);
        sandbox_life_end(&life);
    }
    sandbox_life_done(&life);
    if (line->client->interrupt.caught)
        return 128 + line->client->interrupt.caught;
    client_close(line->client);
    return code;
}

static const struct option_row rows[] = {
    { .name = "cpus",
      .kind = OPTION_NUMBER,
      .offset = offsetof(struct run_options, cpus),
      .value = "N",
      .text = "virtual processors (1)",
      .min = 1,
      .max = UINT32_MAX },
    { .name = "memory",
      .kind = OPTION_NUMBER,
      .offset = offsetof(struct run_options, memory_mb),
      .value = "MB",
      .text = "memory in MiB (512)",
      .min = 1,
      .max = UINT32_MAX },
    INPUT_OPTION(struct run_options),
};

const struct command command_sandbox_run = {
    .name = "run",
    .path = "iii sandbox run",
    .text = "Run one program in a sandbox of its own; its output and exit code are ours.",
    .words = { { .name = "IMAGE", .kind = WORD_IMAGE } },
    .tail = TAIL_PROGRAM,
    COMMAND_OPTIONS(struct run_options, rows, .cpus = { .value = 1 },
                    .memory_mb = { .value = 512 }),
    .run = run_run,
};
