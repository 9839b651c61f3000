/* worker_script.c - see worker_script.h. */
#include "worker_script.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>

#include "codec.h"
#include "log.h"

#define WORKSPACE "/workspace"

struct worker_script {
    struct sandbox *sandbox; /* one reference */
    struct worker_script_spec spec;
    const struct worker_script_events *events;
    void *ctx;
    struct agent_call *call;   /* NULL: ended, or given up */
    struct agent_call *signal; /* SIGTERM on its way; NULL: none */
    struct loop_timer *timer;  /* deadline, then the kill's */
    bool started;
    bool timed_out;
    bool killing;
};

void worker_script_free(struct worker_script *script)
{
    if (!script)
        return;
    if (script->signal)
        agent_call_abandon(script->signal);
    if (script->call)
        agent_call_abandon(script->call);
    loop_timer_free(script->timer);
    sandbox_unref(script->sandbox);
    free(script);
}

static void script_end(struct worker_script *script, enum worker_script_end end, int32_t code,
                       const char *why)
{
    for (unsigned stream = 1; script->spec.log && stream <= WORKER_LOG_STREAMS; stream++)
        worker_log_flush(script->spec.log, stream);
    script->events->ended(script->ctx, end, code, why);
    worker_script_free(script);
}

static enum worker_script_end killed_end(const struct worker_script *script)
{
    return script->timed_out ? SCRIPT_TIMED_OUT : SCRIPT_KILLED;
}

static void script_tell_started(struct worker_script *script)
{
    if (script->started)
        return;
    script->started = true;
    if (script->events->started)
        script->events->started(script->ctx);
}

/* The agent's events. */

static void on_head(void *ctx, const void *head)
{
    script_tell_started(ctx);
}

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct worker_script *script = ctx;

    assert(stream == 1 || stream == 2);
    if (script->spec.log)
        worker_log_add(script->spec.log, stream, data, size);
    if (script->spec.captures)
        capture_add(&script->spec.captures[stream - 1], data, size);
    agent_call_grant(script->call, stream, size);
}

static void on_ended(void *ctx, const void *body, struct sandbox_error *err, bool lost)
{
    struct worker_script *script = ctx;
    const struct guest_exec_reply *reply = body;

    script->call = NULL;
    loop_timer_disarm(script->timer);
    if (script->killing)
        script_end(script, killed_end(script), 0, "");
    else if (err)
        script_end(script, SCRIPT_LOST, 0,
                   lost ? sandbox_lost_cause(script->sandbox, err->message) : err->message);
    else
        script_end(script, SCRIPT_EXITED, reply->exit_code, "");
}

static const struct agent_call_events script_events = {
    .head = on_head,
    .data = on_data,
    .ended = on_ended,
};

/* Ending it. */

void worker_script_kill(struct worker_script *script)
{
    if (script->killing)
        return;
    script->killing = true;
    agent_call_cancel(script->call);
    loop_timer_arm(script->timer, WORKER_SCRIPT_KILL_MS);
}

static void on_timer(void *ctx)
{
    struct worker_script *script = ctx;

    if (!script->killing) {
        script->timed_out = true;
        worker_script_kill(script);
        return;
    }
    log_event(LOG_WARN, "script_kill_unconfirmed", log_text("vm", sandbox_id(script->sandbox)));
    agent_call_give_up(take_ptr(script->call));
    script_end(script, killed_end(script), 0, "");
}

static void on_signalled(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct worker_script *script = ctx;

    script->signal = NULL; /* what did not reach it is killed at its deadline */
}

static const struct agent_call_events signal_events = { .ended = on_signalled };

void worker_script_terminate(struct worker_script *script)
{
    const struct guest_signal request = {
        .has_call = true,
        .call = agent_call_id(script->call),
        .has_number = true,
        .number = SIGTERM,
    };
    struct sandbox_error err = { 0 };

    if (script->signal || script->killing)
        return;
    if (sandbox_call(script->sandbox, GUEST_signal, &request, &signal_events, script,
                     &script->signal, &err) < 0)
        sandbox_error_done(&err); /* it is killed at its deadline */
}

/* The beginning. */

static int script_call(struct worker_script *script, const struct worker_script_spec *spec,
                       struct sandbox_error *err)
{
    char *argv[] = { (char *)"/bin/sh", (char *)"-e", (char *)"-c", (char *)spec->text };
    const struct guest_exec request = {
        .has_argv = true,
        .argv = { .count = ARRAY_SIZE(argv), .items = argv },
        .has_env = true,
        .env = *spec->env,
        .has_workdir = true,
        .workdir = (char *)WORKSPACE,
        .has_announce = true,
        .announce = true,
    };

    return sandbox_call(script->sandbox, GUEST_exec, &request, &script_events, script,
                        &script->call, err);
}

int worker_script_start(struct sandbox *sandbox, const struct worker_script_spec *spec,
                        const struct worker_script_events *events, void *ctx,
                        struct worker_script **ret_script, struct sandbox_error *err)
{
    struct worker_script *script = calloc(1, sizeof(*script));

    if (!script)
        return sandbox_error_set(err, S300, "no memory for a script");
    script->sandbox = sandbox_ref(sandbox);
    script->spec = *spec;
    script->events = events;
    script->ctx = ctx;
    if (loop_timer_new(sandbox_loop(sandbox), on_timer, script, &script->timer) < 0) {
        worker_script_free(script);
        return sandbox_error_set(err, S300, "no memory for a script");
    }
    if (script_call(script, spec, err) < 0) {
        worker_script_free(script);
        return -1;
    }
    if (spec->timeout_ms > 0)
        loop_timer_arm(script->timer, spec->timeout_ms);
    *ret_script = script;
    return 0;
}
