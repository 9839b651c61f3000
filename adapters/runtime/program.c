/* program.c - see program.h. */
#include "program.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "adapter.h"
#include "base64.h"
#include "capture.h"
#include "codec.h"
#include "log.h"

enum program_state {
    PROGRAM_RUNNING,   /* the guest has it; the timer is its deadline */
    PROGRAM_TIMED_OUT, /* killed at the deadline; the timer waits for the guest's word */
    PROGRAM_CANCELLED, /* killed because nobody wants it; the same */
    PROGRAM_STATE_MAX
};

struct program {
    struct sandbox *sandbox; /* one reference, and one slot */
    struct loop *loop;
    enum program_state state;
    program_done_fn done;
    void *ctx;
    struct agent_call *call; /* NULL once it has ended or was given up */
    struct loop_timer *timer;
    uint64_t timeout_ms; /* effective */
    uint64_t started_ms;
    struct buf input; /* standard input, decoded */
    size_t input_sent;
    struct capture output[2];        /* streams 1 and 2 */
    const struct program_live *live; /* NULL: the output goes into the reply */
    bool started;                    /* and this was told */
};

static void program_set_state(struct program *program, enum program_state state)
{
    static const char *const names[] = { "running", "timed-out", "cancelled" };
    static_assert(ARRAY_SIZE(names) == PROGRAM_STATE_MAX, "a name for each state");

    assert(program->state == PROGRAM_RUNNING && state != PROGRAM_RUNNING);
    log_event(LOG_DEBUG, "program_state", log_text("sandbox", sandbox_id(program->sandbox)),
              log_text("from", names[program->state]), log_text("to", names[state]));
    program->state = state;
}

static void program_free(struct program *program)
{
    if (!program)
        return;
    assert(!program->call);
    loop_timer_free(program->timer);
    buf_done(&program->input);
    capture_done(&program->output[0]);
    capture_done(&program->output[1]);
    sandbox_unref(program->sandbox);
    free(program);
}
DEFINE_CLEANUP(struct program *, program_free)

/* Outcomes. */

/* The slot is free before anybody hears of it. */
static void program_finish(struct program *program, struct exec_reply *reply,
                           struct sandbox_error *err)
{
    sandbox_give_slot(program->sandbox);
    program->done(program->ctx, reply, reply ? NULL : err);
    sandbox_error_done(err);
    program_free(program);
}

static void program_lost(struct program *program, const char *reason,
                         enum sandbox_outcome outcome)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S300, "sandbox %s, exec: %s", sandbox_id(program->sandbox),
                            sandbox_lost_cause(program->sandbox, reason));
    sandbox_error_set_outcome(&err, outcome);
    program_finish(program, NULL, &err);
}

static void set_timed_out(const struct sandbox *sandbox, uint64_t timeout_ms,
                          struct error_partial *own_partial, struct sandbox_error *err)
{
    (void)sandbox_error_set(err, S200,
                            "exec in sandbox %s passed its timeout of %" PRIu64 " ms",
                            sandbox_id(sandbox), timeout_ms);
    sandbox_error_set_partial(err, own_partial);
}

static void program_timed_out(struct program *program)
{
    struct sandbox_error err = { 0 };

    set_timed_out(program->sandbox, program->timeout_ms, capture_partial(program->output),
                  &err);
    program_finish(program, NULL, &err);
}

/* Not of a program that was killed meanwhile: its outcome is the answer. */
static void program_tell_started(struct program *program)
{
    if (!program->live || program->started || program->state != PROGRAM_RUNNING)
        return;
    program->started = true;
    program->live->started(program->live->ctx);
}

static int make_blob(const struct capture *capture, struct blob *ret_blob)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    if (capture_text(capture, &text) < 0)
        return -ENOMEM;
    ret_blob->data = (char *)buf_take(&text, &ret_blob->size);
    return ret_blob->data ? 0 : -ENOMEM;
}

/* What a live program wrote was handed on. */
static int fill_output(const struct program *program, struct exec_reply *reply)
{
    if (program->live)
        return 0;
    reply->stdout_truncated = capture_truncated(&program->output[0]);
    reply->stderr_truncated = capture_truncated(&program->output[1]);
    if (make_blob(&program->output[0], &reply->stdout) < 0)
        return -ENOMEM;
    return make_blob(&program->output[1], &reply->stderr);
}

static void program_ended(struct program *program, int32_t exit_code)
{
    struct sandbox_error none = { 0 };
    struct exec_reply reply = {
        .has_exit_code = true,
        .exit_code = exit_code,
        .duration_ms = loop_now_ms(program->loop) - program->started_ms,
        .success = exit_code == 0,
    };

    program_tell_started(program);
    if (fill_output(program, &reply) < 0)
        program_lost(program, "no memory for its output", OUTCOME_MAY_HAVE_RUN);
    else
        program_finish(program, &reply, &none);
    codec_free(&type_exec_reply, &reply);
}

/* The guest's own error: the program was not started, unless it spoke already. */
static void program_refused(struct program *program, const struct sandbox_error *err)
{
    bool spoke = program->output[0].total > 0 || program->output[1].total > 0;

    program_lost(program, err->message, spoke ? OUTCOME_MAY_HAVE_RUN : OUTCOME_NEVER_RAN);
}

static void program_running_ended(struct program *program, const struct guest_exec_reply *reply,
                                  const struct sandbox_error *err, bool lost)
{
    if (lost)
        program_lost(program, err->message, OUTCOME_MAY_HAVE_RUN);
    else if (err)
        program_refused(program, err);
    else if (reply->timed_out)
        program_timed_out(program);
    else if (reply->cancelled)
        program_lost(program, "the guest agent killed the program unasked",
                     OUTCOME_MAY_HAVE_RUN);
    else
        program_ended(program, reply->exit_code);
}

/* Killed, for whatever the guest said about it. */
static void program_killed(struct program *program)
{
    if (program->state == PROGRAM_TIMED_OUT)
        program_timed_out(program);
    else
        program_lost(program, "its caller is gone", OUTCOME_MAY_HAVE_RUN);
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct program *program = ctx;

    program->call = NULL;
    if (program->state == PROGRAM_RUNNING)
        program_running_ended(program, reply, err, lost);
    else
        program_killed(program);
}

/* Deadline and kill. */

static void program_kill(struct program *program, enum program_state state)
{
    program_set_state(program, state);
    agent_call_cancel(program->call);
    loop_timer_arm(program->timer, PROGRAM_KILL_MS);
}

static void on_timer(void *ctx)
{
    struct program *program = ctx;

    if (program->state == PROGRAM_RUNNING) {
        program_kill(program, PROGRAM_TIMED_OUT);
        return;
    }
    log_event(LOG_WARN, "exec_kill_unconfirmed",
              log_text("sandbox", sandbox_id(program->sandbox)));
    agent_call_give_up(take_ptr(program->call));
    program_killed(program);
}

void program_cancel(struct program *program)
{
    if (program->state == PROGRAM_RUNNING && program->call)
        program_kill(program, PROGRAM_CANCELLED);
}

/* Streams. */

static void program_feed(struct program *program)
{
    size_t left = program->input.size - program->input_sent;

    if (left == 0)
        return;
    program->input_sent += agent_call_write(program->call, 0,
                                            program->input.data + program->input_sent, left);
    if (program->input_sent == program->input.size)
        agent_call_end(program->call, 0, NULL);
}

static void on_writable(void *ctx, unsigned stream)
{
    struct program *program = ctx;

    if (program->live && program->live->has_input)
        program->live->writable(program->live->ctx);
    else
        program_feed(program);
}

void program_grant(struct program *program, unsigned stream, size_t size)
{
    if (program->call)
        agent_call_grant(program->call, stream, size);
}

size_t program_write(struct program *program, const uint8_t *data, size_t size)
{
    return program->call ? agent_call_write(program->call, 0, data, size) : size;
}

void program_end_input(struct program *program)
{
    if (program->call)
        agent_call_end(program->call, 0, NULL);
}

static void on_head(void *ctx, const void *head)
{
    program_tell_started(ctx);
}

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct program *program = ctx;

    assert(stream == 1 || stream == 2);
    capture_add(&program->output[stream - 1], data, size);
    program_tell_started(program); /* it may have written before the guest knew */
    if (program->live && program->started)
        program->live->output(program->live->ctx, stream, data, size);
    else
        agent_call_grant(program->call, stream, size);
}

/* Beginning. */

static const struct agent_call_events call_events = {
    .head = on_head,
    .data = on_data,
    .writable = on_writable,
    .ended = on_ended,
};

static int ask_guest(struct program *program, const struct program_spec *spec,
                     struct sandbox_error *err)
{
    struct guest_exec request = {
        .argv = *spec->argv,
        .workdir = (char *)spec->workdir,
        .has_workdir = spec->workdir != NULL,
        .timeout_ms = program->timeout_ms,
        .has_stdin = program->input.size > 0 || (spec->live && spec->live->has_input),
        .has_announce = spec->live != NULL,
        .announce = spec->live != NULL,
        .has_env = true,
    };
    int result = env_append(spec->env, &request.env);

    if (result < 0)
        (void)sandbox_error_set(err, S300, "sandbox %s, exec: no memory",
                                sandbox_id(program->sandbox));
    else
        result = sandbox_call(program->sandbox, GUEST_exec, &request, &call_events, program,
                              &program->call, err);
    text_list_done(&request.env);
    return result;
}

static int read_input(struct program *program, const char *stdin_b64, struct sandbox_error *err)
{
    int result = stdin_b64 ? base64_decode(&program->input, stdin_b64, strlen(stdin_b64)) : 0;

    if (result == -EINVAL)
        return sandbox_error_set(err, S001,
                                 "stdin: expected base64 (standard alphabet, padded), got "
                                 "\"%.60s\"",
                                 stdin_b64);
    if (result < 0)
        return sandbox_error_set(err, S300, "sandbox %s, exec: no memory for stdin",
                                 sandbox_id(program->sandbox));
    return 0;
}

/* The slot is taken. */
static int program_begin(struct program *program, const struct program_spec *spec,
                         struct sandbox_error *err)
{
    if (read_input(program, spec->stdin_b64, err) < 0)
        return -1;
    if (program->timeout_ms == 0) {
        set_timed_out(program->sandbox, 0, capture_partial(program->output), err);
        return -1;
    }
    if (ask_guest(program, spec, err) < 0)
        return -1;
    loop_timer_arm(program->timer, program->timeout_ms);
    program_feed(program);
    return 0;
}

static uint64_t effective_timeout_ms(uint64_t timeout_ms, uint64_t max_ms)
{
    max_ms = max_ms > 0 ? max_ms : 1;
    return timeout_ms < max_ms ? timeout_ms : max_ms;
}

static int program_new(struct sandbox *sandbox, struct loop *loop, struct program **ret_program)
{
    _cleanup_(program_freep)
    struct program *program = calloc(1, sizeof(*program));
    int result;

    if (!program)
        return -ENOMEM;
    program->sandbox = sandbox_ref(sandbox);
    program->loop = loop;
    result = loop_timer_new(loop, on_timer, program, &program->timer);
    if (result < 0)
        return result;
    *ret_program = take_ptr(program);
    return 0;
}

int program_start(struct sandbox *sandbox, const struct program_spec *spec,
                  const struct adapter_settings *settings, program_done_fn done, void *ctx,
                  struct program **ret_program, struct sandbox_error *err)
{
    _cleanup_(program_freep)
    struct program *program = NULL;

    if (sandbox_take_slot(sandbox, settings->max_concurrent_exec_per_sandbox, err) < 0)
        return -1;
    if (program_new(sandbox, sandbox_loop(sandbox), &program) < 0) {
        (void)sandbox_error_set(err, S300, "sandbox %s, exec: no memory", sandbox_id(sandbox));
    } else {
        program->done = done;
        program->ctx = ctx;
        program->started_ms = loop_now_ms(program->loop);
        program->timeout_ms = effective_timeout_ms(spec->timeout_ms,
                                                   settings->max_exec_timeout_ms);
        program->live = spec->live;
        capture_init(&program->output[0], spec->live ? 0 : settings->max_output_bytes);
        capture_init(&program->output[1], spec->live ? 0 : settings->max_output_bytes);
        if (program_begin(program, spec, err) == 0) {
            *ret_program = take_ptr(program);
            return 0;
        }
    }
    sandbox_give_slot(sandbox);
    sandbox_error_set_outcome(err, OUTCOME_NEVER_RAN); /* request_fail() keeps it with S300 */
    return -1;
}
