/* exec.c - see exec.h; the states are in exec_state.h. */
#include "exec.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "environment.h"
#include "exec_state.h"
#include "frames.h"
#include "log.h"

static void exec_set_state(struct exec *exec, enum exec_state state)
{
    static const char *const names[] = { "running", "draining", "killing", "cleared", "over" };
    _Static_assert(ARRAY_SIZE(names) == EXEC_STATE_MAX, "a name for each state");

    assert(state > exec->state);
    log_event(LOG_DEBUG, "exec_state", log_uint("call", exec->call.id),
              log_text("from", names[exec->state]), log_text("to", names[state]));
    exec->state = state;
}

/* Its last frames are queued: they go before anything is tidied up. */
static void exec_over(struct exec *exec)
{
    struct serve *serve = exec->call.serve;

    exec_set_state(exec, EXEC_OVER);
    serve_end(serve, &exec->call);
    serve_send(serve);
    exec_free(exec);
    exec_make_next(serve);
}

/* The end: one REPLY. */

static int exec_exit_code(int wait_status)
{
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/* Answers with CODE, behind TEXT (may be NULL) on standard error, and frees the exec. */
static void exec_reply(struct exec *exec, int code, const struct buf *text)
{
    const struct guest_exec_reply reply = {
        .has_exit_code = true,
        .exit_code = code,
        .has_timed_out = true,
        .timed_out = exec->timed_out,
        .has_cancelled = true,
        .cancelled = exec->cancelled,
    };
    struct serve *serve = exec->call.serve;

    if (text && text->size > 0)
        serve_queued(serve, frames_data(serve_queue(serve), exec->call.id, EXEC_STDERR + 1,
                                        text->data, text->size));
    for (unsigned i = 0; i < EXEC_OUTPUTS; i++)
        serve_queued(serve, frames_end(serve_queue(serve), exec->call.id, i + 1, NULL));
    serve_queued(serve, frames_map(serve_queue(serve), AGENT_FRAME_REPLY, exec->call.id,
                                   &type_guest_exec_reply, &reply));
    exec_over(exec);
}

void exec_check(struct exec *exec)
{
    const bool ended = exec->outputs[EXEC_STDOUT].ended && exec->outputs[EXEC_STDERR].ended;

    if (!ended)
        return;
    if (exec->state == EXEC_DRAINING || exec->state == EXEC_CLEARED)
        exec_reply(exec, exec_exit_code(exec->wait_status), NULL);
}

/* Reads what is there, and what comes in the next 100 ms. */
static void exec_drain(struct exec *exec, enum exec_state state)
{
    exec_set_state(exec, state);
    loop_timer_arm(exec->drain, EXEC_DRAIN_MS);
    for (int i = 0; i < EXEC_OUTPUTS; i++)
        exec_output_drain(&exec->outputs[i]);
    exec_check(exec);
}

void exec_drained(void *ctx)
{
    struct exec *exec = ctx;

    for (int i = 0; i < EXEC_OUTPUTS; i++) {
        if (exec->state == EXEC_CLEARED)
            exec_output_end(&exec->outputs[i]);
        else
            exec_output_pump(&exec->outputs[i]); /* what is owed, whatever the time */
    }
    exec_check(exec);
}

/* The tree's events. */

static void exec_started(void *ctx)
{
    const struct guest_empty nothing = { 0 };
    struct exec *exec = ctx;
    struct serve *serve = exec->call.serve;

    if (exec->announce)
        serve_queued(serve, frames_map(serve_queue(serve), AGENT_FRAME_HEAD, exec->call.id,
                                       &type_guest_empty, &nothing));
}

static void exec_ended(void *ctx, int wait_status)
{
    struct exec *exec = ctx;

    if (exec->state != EXEC_RUNNING)
        return;
    exec->wait_status = wait_status;
    loop_timer_disarm(exec->deadline);
    exec_drain(exec, EXEC_DRAINING);
}

static void exec_killed(void *ctx)
{
    struct exec *exec = ctx;

    if (exec->state == EXEC_KILLING)
        exec_drain(exec, EXEC_CLEARED);
}

static void exec_kill(struct exec *exec)
{
    if (exec->state > EXEC_DRAINING)
        return;
    if (exec->state == EXEC_RUNNING)
        exec->wait_status = SIGKILL;
    loop_timer_disarm(exec->deadline);
    loop_timer_disarm(exec->drain);
    exec_set_state(exec, EXEC_KILLING);
    tree_kill(exec->tree);
}

void exec_deadline_passed(void *ctx)
{
    struct exec *exec = ctx;

    exec->timed_out = true;
    exec_kill(exec);
}

/* Failing to start. */

/* The program's part of a message; no path is longer. */
#define NAME_SHOWN_BYTES 16384

/* Exit code and text of standard error for what contract 5.2.6 counts as a reply; 0: it is an
 * error. */
static int refusal_reply(const struct exec *exec, const struct spawn_failure *failure,
                         struct buf *text)
{
    const bool missing = failure->error == ENOENT || failure->error == ENOTDIR;
    const char *name = failure->step == SPAWN_WORKDIR ? exec->workdir : exec->program;
    const char *reason = missing ? "not found" : "permission denied";

    if (failure->step == SPAWN_SETUP)
        return 0;
    if (!missing && (failure->step != SPAWN_PROGRAM || failure->error != EACCES))
        return 0;
    (void)buf_printf(text, "exec: %.*s: %s\n", NAME_SHOWN_BYTES, name, reason);
    return missing ? 127 : 126;
}

static void exec_send_error(struct serve *serve, uint64_t id, const char *program, int error)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S300, "%s could not be started: %s", program,
                            error == EAGAIN ? "this sandbox has all the processes it may have"
                                            : strerror(error));
    serve_queued(serve, frames_error(serve_queue(serve), id, &err));
    sandbox_error_done(&err);
}

static void exec_failed(void *ctx, const struct spawn_failure *failure)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct exec *exec = ctx;
    int code = refusal_reply(exec, failure, &text);

    if (code == 0 && exec->state == EXEC_KILLING)
        code = exec_exit_code(exec->wait_status);
    if (code != 0) {
        exec_reply(exec, code, &text);
        return;
    }
    exec_send_error(exec->call.serve, exec->call.id, exec->program, failure->error);
    exec_over(exec);
}

/* Frames of the host. */

static struct exec *exec_of(struct call *call)
{
    return CONTAINER_OF(call, struct exec, call);
}

static int exec_data(struct call *call, unsigned stream, struct span bytes)
{
    return stream == 0 ? exec_input_data(&exec_of(call)->input, bytes) : -EPROTO;
}

static int exec_slot(struct call *call, unsigned stream, unsigned slot, size_t size)
{
    return stream == 0 ? exec_input_slot(&exec_of(call)->input, slot, size) : -EPROTO;
}

static int exec_end(struct call *call, unsigned stream, struct span reason)
{
    if (stream != 0)
        return -EPROTO;
    exec_input_end(&exec_of(call)->input);
    return 0;
}

static int exec_credit(struct call *call, unsigned stream, uint64_t size)
{
    struct exec *exec = exec_of(call);
    struct exec_output *output;

    if (stream < 1 || stream > EXEC_OUTPUTS)
        return -EPROTO;
    output = &exec->outputs[stream - 1];
    if (size > AGENT_WIDE_WINDOW_BYTES || output->window + size > AGENT_WIDE_WINDOW_BYTES)
        return -EPROTO;
    output->window += size;
    exec_output_pump(output);
    exec_check(exec);
    return 0;
}

static void exec_cancel(struct call *call)
{
    exec_of(call)->cancelled = true;
    exec_kill(exec_of(call));
}

static void exec_resume(struct call *call)
{
    for (int i = 0; i < EXEC_OUTPUTS; i++)
        exec_output_pump(&exec_of(call)->outputs[i]);
    exec_check(exec_of(call));
}

static const struct call_ops exec_ops = {
    .data = exec_data,
    .slot = exec_slot,
    .end = exec_end,
    .credit = exec_credit,
    .cancel = exec_cancel,
    .resume = exec_resume,
};

bool exec_signal(struct call *call, int number)
{
    if (call->ops != &exec_ops)
        return false;
    if (exec_of(call)->state == EXEC_RUNNING)
        tree_signal(exec_of(call)->tree, number);
    return true;
}

/* The beginning. */

static const struct tree_events exec_tree_events = {
    .started = exec_started,
    .failed = exec_failed,
    .ended = exec_ended,
    .killed = exec_killed,
};

struct start {
    int stdin_fd; /* the program's end; -1: it has none */
    char **environment;
    char **argv;
};

static void start_done(struct start *start)
{
    closep(&start->stdin_fd);
    free(start->environment);
    free(start->argv);
}

static int exec_prepare(struct exec *exec, const struct guest_exec *request,
                        struct start *start)
{
    struct serve *serve = exec->call.serve;
    const struct text_list *const layers[] = { &serve->environment, &request->env };

    exec->program = strdup(request->argv.items[0]);
    exec->workdir = strdup(request->workdir ? request->workdir : serve->workdir);
    start->environment = environment_merge(layers, ARRAY_SIZE(layers));
    start->argv = calloc(request->argv.count + 1, sizeof(*start->argv));
    if (!exec->program || !exec->workdir || !start->environment || !start->argv)
        return -ENOMEM;
    memcpy(start->argv, request->argv.items, request->argv.count * sizeof(*start->argv));
    return request->has_stdin ? exec_input_init(&exec->input, exec, &start->stdin_fd) : 0;
}

static int exec_start(struct exec *exec, const struct guest_exec *request,
                      struct spawn_failure *ret_failure)
{
    _cleanup_(start_done)
    struct start start = { .stdin_fd = -1 };
    struct serve *serve = exec->call.serve;
    const struct exec_output *outputs = exec->outputs;
    int result = exec_prepare(exec, request, &start);
    struct spawn spawn;

    if (result < 0) {
        *ret_failure = (struct spawn_failure){ .step = SPAWN_SETUP, .error = -result };
        return -1;
    }
    spawn = (struct spawn){
        .argv = start.argv,
        .environment = start.environment,
        .workdir = exec->workdir,
        .fds = { start.stdin_fd < 0 ? serve->null_fd : start.stdin_fd,
                 outputs[EXEC_STDOUT].their_fd, outputs[EXEC_STDERR].their_fd },
        .cgroup_fd = -1,
    };
    return tree_start(serve->trees, &spawn, &exec_tree_events, exec, &exec->tree, ret_failure);
}

void exec_begin(struct serve *serve, uint64_t id, const struct guest_exec *request)
{
    struct exec *exec;
    struct spawn_failure failure;
    const int result = request->argv.count == 0 ? -EINVAL : exec_take(serve, &exec);

    if (result < 0) {
        exec_send_error(serve, id, "the program", -result);
        return;
    }
    exec->announce = request->announce;
    serve_begin(serve, &exec->call, id, &exec_ops);
    if (exec_start(exec, request, &failure) < 0) {
        exec_failed(exec, &failure);
        return;
    }
    if (request->timeout_ms > 0)
        loop_timer_arm(exec->deadline, request->timeout_ms);
}
