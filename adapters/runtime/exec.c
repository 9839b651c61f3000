/* exec.c - the operation `exec`: its checks in the order of contract 4.4, then program.c, or
 * live_output.c when the output is streamed. */
#include "codec.h"
#include "command.h"
#include "handlers.h"
#include "idempotency.h"
#include "live_output.h"
#include "program.h"
#include "sandboxes.h"

/* A call that has passed the checks of the registry. */
struct exec_call {
    struct request *request; /* NULL: answered with channels */
    struct sandbox *sandbox; /* one reference */
    struct text_list argv;
    struct sandbox_wait boot;
    struct program *program;  /* NULL until the sandbox is ready */
    struct live_output *live; /* instead, when it is streamed */
};

static void call_free(struct exec_call *call)
{
    sandbox_wait_cancel(&call->boot);
    live_output_free(call->live);
    sandbox_unref(call->sandbox);
    text_list_done(&call->argv);
    free(call);
}

static void call_fail(struct exec_call *call, struct sandbox_error *err)
{
    if (call->request) {
        request_on_cancel(call->request, NULL, NULL);
        request_fail(call->request, err);
    } else {
        live_output_fail(take_ptr(call->live), err);
    }
    call_free(call);
}

static void on_done(void *ctx, struct exec_reply *reply, struct sandbox_error *err)
{
    struct exec_call *call = ctx;

    if (!reply) {
        call_fail(call, err);
        return;
    }
    if (call->request) {
        request_on_cancel(call->request, NULL, NULL);
        request_reply(call->request, reply);
    } else {
        live_output_finish(take_ptr(call->live), &type_exec_reply, reply);
    }
    call_free(call);
}

/* Waiting for boot or channels, or the program: nobody wants it any more. */
static void on_cancel(void *ctx)
{
    struct exec_call *call = ctx;
    struct sandbox_error err = { 0 };

    if (call->program) {
        program_cancel(call->program);
        return;
    }
    if (call->live && live_output_running(call->live)) {
        live_output_cancel(call->live);
        return;
    }
    (void)sandbox_error_set(&err, S300, "sandbox %s, exec: its caller is gone",
                            sandbox_id(call->sandbox));
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    call_fail(call, &err);
}

static struct program_spec spec_of(const struct exec_call *call)
{
    const struct exec_request *body = request_body(call->request);

    return (struct program_spec){
        .argv = &call->argv,
        .env = &body->env,
        .workdir = body->workdir,
        .stdin_b64 = body->stdin,
        .timeout_ms = body->timeout_ms,
    };
}

/* Streamed: the channels first, so that the answer can name them as soon as it runs. */

static void on_opened(void *ctx, struct sandbox_error *err)
{
    struct exec_call *call = ctx;
    const struct exec_request *body = request_body(call->request);
    const struct program_spec spec = spec_of(call);
    struct sandbox_error own = { 0 };

    if (err) {
        sandbox_error_set_outcome(err, OUTCOME_NEVER_RAN);
        call_fail(call, err);
    } else if (live_output_start(call->live, call->sandbox, &spec,
                                 body->has_stdin_stream ? &body->stdin_stream : NULL,
                                 request_settings(call->request), &own) < 0) {
        call_fail(call, &own);
    }
}

static void on_started(void *ctx)
{
    struct exec_call *call = ctx;
    const struct exec_stream_reply reply = live_output_reply(call->live);

    request_on_cancel(call->request, NULL, NULL);
    request_reply_as(take_ptr(call->request), &type_exec_stream_reply, &reply);
}

static int start_live(struct exec_call *call, struct sandbox_error *err)
{
    static const struct live_output_events events = {
        .opened = on_opened,
        .started = on_started,
        .ended = on_done,
        .abandoned = on_cancel,
    };

    return live_output_new(request_adapter(call->request), &events, call, &call->live, err);
}

/* ERR: the sandbox did not become ready. */
static void on_ready(void *ctx, struct sandbox_error *err)
{
    struct exec_call *call = ctx;
    const struct exec_request *body = request_body(call->request);
    const struct program_spec spec = spec_of(call);
    struct sandbox_error own = { 0 };
    int result;

    if (err) {
        sandbox_error_set_outcome(err, OUTCOME_NEVER_RAN);
        call_fail(call, err);
        return;
    }
    if (body->stream)
        result = start_live(call, &own);
    else
        result = program_start(call->sandbox, &spec, request_settings(call->request), on_done,
                               call, &call->program, &own);
    if (result < 0) {
        sandbox_error_set_outcome(&own, OUTCOME_NEVER_RAN); /* kept with S300 alone */
        call_fail(call, &own);
    }
}

/* The checks that need only the request. */
static int check_request(const struct exec_request *body, char ret_id[UUID_TEXT_BYTES],
                         struct text_list *ret_argv, struct sandbox_error *err)
{
    const struct live_output_keys keys = {
        .stream = body->stream,
        .stdin_b64 = body->stdin,
        .stdin_stream = body->has_stdin_stream ? &body->stdin_stream : NULL,
        .idempotency_key = body->idempotency_key,
    };

    if (sandbox_read_id(body->sandbox_id, ret_id, err) < 0 ||
        command_read(body, ret_argv, err) < 0)
        return -1;
    if (body->workdir && body->workdir[0] != '/')
        return sandbox_error_set(
            err, S001, "workdir: expected an absolute path, got \"%.200s\"", body->workdir);
    if (live_output_check(&keys, err) < 0)
        return -1;
    return env_check(&body->env, err);
}

static int check_sandbox(struct request *request, const char *id, struct sandbox **ret_sandbox,
                         struct sandbox_error *err)
{
    struct registry *registry = sandboxes_registry(adapter_sandboxes(request_adapter(request)));

    if (registry_find(registry, id, ret_sandbox, err) < 0)
        return -1;
    return sandbox_check_open(*ret_sandbox, err);
}

static int call_new(struct request *request, struct sandbox *sandbox,
                    struct exec_call **ret_call, struct sandbox_error *err)
{
    struct exec_call *call = calloc(1, sizeof(*call));

    if (!call) {
        sandbox_error_set_outcome(err, OUTCOME_NEVER_RAN);
        return sandbox_error_set(err, S300, "sandbox %s, exec: no memory", sandbox_id(sandbox));
    }
    call->request = request;
    call->sandbox = sandbox_ref(sandbox);
    sandbox_wait_init(&call->boot, on_ready, call);
    *ret_call = call;
    return 0;
}

void handle_exec(struct request *request)
{
    _cleanup_(text_list_done)
    struct text_list argv = { 0 };
    char id[UUID_TEXT_BYTES];
    struct sandbox *sandbox;
    struct exec_call *call = NULL;
    struct sandbox_error err = { 0 };

    if (check_request(request_body(request), id, &argv, &err) < 0) {
        request_fail(request, &err);
        return;
    }
    if (!idempotency_admit(request))
        return;
    if (check_sandbox(request, id, &sandbox, &err) < 0 ||
        call_new(request, sandbox, &call, &err) < 0) {
        request_fail(request, &err);
        return;
    }
    call->argv = argv;
    argv = (struct text_list){ 0 };
    request_on_cancel(request, on_cancel, call);
    sandbox_when_ready(sandbox, &call->boot);
}
