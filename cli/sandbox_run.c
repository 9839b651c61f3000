/* sandbox_run.c - `iii sandbox run`: create, exec, stop, and the sandbox is stopped on every
 * way out.
 *
 * A signal gives all that is left RUN_END_MS: a create under way may still tell its id, so that
 * it can be stopped; if it does not, closing the socket cancels it, and no VM is left. */
#include <stdio.h>

#include "output.h"
#include "program_call.h"
#include "progress.h"
#include "sandbox.h"
#include "sandbox_call.h"

#define RUN_IDLE_TIMEOUT_SECS 60 /* a killed run leaves no VM for longer */
#define RUN_END_MS 5000u

struct run_options {
    struct target_options target;
    struct option_number cpus;
    struct option_number memory_mb;
    bool input;
    bool help;
};

struct run {
    struct client client;
    const struct run_options *options;
    const struct option_rest *rest;
    struct progress progress;
    struct buf sandbox_id;
    uint64_t end_ms; /* when all must be over; after a signal */
};

static bool is_interrupted(const struct run *run)
{
    return run->client.interrupt.caught != 0;
}

/* Waits; a signal shortens it to RUN_END_MS. */
static enum client_outcome wait_on(struct run *run, const struct client_call *call,
                                   uint64_t deadline_ms)
{
    if (!is_interrupted(run)) {
        enum client_outcome outcome = client_wait(&run->client, call, deadline_ms, false);

        if (outcome != CLIENT_INTERRUPTED)
            return outcome;
    }
    if (run->end_ms == 0)
        run->end_ms = client_now_ms(&run->client) + RUN_END_MS;
    return client_wait(&run->client, call, run->end_ms, true);
}

static int begin(struct run *run, struct client_call *call, const char *function,
                 struct payload *payload)
{
    struct client_request request = { .function = function };
    int result = payload_end(payload, &request.payload);

    return result == 0 ? client_call_begin(&run->client, call, &request) : result;
}

/* Create. EXIT_CODE_DONE: run->sandbox_id is there. */

static int take_id(struct run *run, const struct client_call *call)
{
    int result = output_member_text(sandbox_result(call), "sandbox_id", &run->sandbox_id);

    if (result < 0 || !buf_text(&run->sandbox_id))
        return sandbox_complain("no memory");
    return run->sandbox_id.size > 0 ? EXIT_CODE_DONE
                                    : sandbox_complain("the reply of create has no sandbox_id");
}

static int create(struct run *run)
{
    struct client_call call = { .progress = progress_event, .progress_ctx = &run->progress };
    struct payload payload = { 0 };
    enum client_outcome outcome = CLIENT_LOST;
    int code;

    payload_text(&payload, "image", run->rest->words[0]);
    payload_number(&payload, "cpus", run->options->cpus.value);
    payload_number(&payload, "memory_mb", run->options->memory_mb.value);
    payload_number(&payload, "idle_timeout_secs", RUN_IDLE_TIMEOUT_SECS);
    progress_begin(&run->progress, run->client.loop, "creating");
    if (begin(run, &call, "sandbox::create", &payload) == 0)
        outcome = wait_on(run, &call, client_now_ms(&run->client) + SANDBOX_CREATE_TIMEOUT_MS);
    progress_end(&run->progress, NULL);
    if (outcome != CLIENT_ANSWERED && is_interrupted(run))
        outcome = CLIENT_INTERRUPTED;
    code = sandbox_outcome(&run->client, &call, outcome, "sandbox::create",
                           SANDBOX_CREATE_TIMEOUT_MS);
    if (code == EXIT_CODE_DONE)
        code = take_id(run, &call);
    client_call_done(&call);
    payload_done(&payload);
    return code;
}

/* Exec. The program's exit code, or ours. */
static int exec(struct run *run)
{
    struct payload payload = { 0 };
    const struct program_call call = {
        .payload = &payload,
        .input = run->options->input,
        .wait_ms = SANDBOX_EXEC_STANDARD_MS + SANDBOX_EXEC_EXTRA_MS,
    };
    int code;

    payload_text(&payload, "sandbox_id", buf_text(&run->sandbox_id));
    payload_texts(&payload, "argv", run->rest->command, run->rest->command_count);
    code = program_run(&run->client, &call);
    payload_done(&payload);
    return code;
}

/* Stop. It changes no exit code. */
static void stop(struct run *run)
{
    struct client_call call = { 0 };
    struct payload payload = { 0 };
    enum client_outcome outcome = CLIENT_LOST;

    if (run->client.lost)
        client_reset(&run->client);
    payload_text(&payload, "sandbox_id", buf_text(&run->sandbox_id));
    payload_bool(&payload, "wait", true);
    if (begin(run, &call, "sandbox::stop", &payload) == 0)
        outcome = wait_on(run, &call, client_now_ms(&run->client) + SANDBOX_CALL_TIMEOUT_MS);
    if (sandbox_outcome(&run->client, &call, outcome, "sandbox::stop",
                        SANDBOX_CALL_TIMEOUT_MS) != EXIT_CODE_DONE)
        (void)sandbox_complain("sandbox %s may still run: stopping it failed",
                               buf_text(&run->sandbox_id));
    client_call_done(&call);
    payload_done(&payload);
}

static int run_all(struct run *run)
{
    int code = create(run);

    if (!is_interrupted(run) && code == EXIT_CODE_DONE)
        code = exec(run);
    if (run->sandbox_id.size > 0)
        stop(run);
    if (is_interrupted(run))
        return 128 + run->client.interrupt.caught;
    client_close(&run->client);
    return code;
}

static int run_run(const struct command *self, int argc, char **argv)
{
    struct run_options options = {
        .target = TARGET_STANDARD,
        .cpus = { .value = 1 },
        .memory_mb = { .value = 512 },
    };
    struct option_rest rest;
    struct run run = { .options = &options, .rest = &rest };
    int code = command_options(self, argc, argv, &options, &rest);

    if (code != EXIT_CODE_DONE)
        return code;
    if (options.help) {
        command_usage(self, 1);
        return EXIT_CODE_DONE;
    }
    if (rest.word_count != 1)
        return command_misused(self, "wants one IMAGE before --");
    if (rest.command_count == 0)
        return command_misused(self, "wants -- and a command");
    if (command_client(&run.client, &options.target) < 0)
        return sandbox_complain("no memory");
    code = run_all(&run);
    client_done(&run.client);
    buf_done(&run.sandbox_id);
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
    TARGET_OPTIONS(struct run_options),
    HELP_OPTION(struct run_options),
};

const struct command command_sandbox_run = {
    .name = "run",
    .path = "iii sandbox run",
    .synopsis = "IMAGE [OPTIONS] -- CMD...",
    .text = "Run one program in a sandbox of its own; its output and exit code are ours.",
    .options = { rows, ARRAY_SIZE(rows) },
    .run = run_run,
};
