/* run.c - the operation `run` (contract 6): create, write files and code, exec, stop. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base64.h"
#include "codec.h"
#include "create.h"
#include "handlers.h"
#include "idempotency.h"
#include "live_output.h"
#include "log.h"
#include "program.h"
#include "stop.h"
#include "upload.h"

/* In this order; an error leads to RUN_STOP, or to the answer when there is nothing to stop. */
enum run_step { RUN_CREATE, RUN_FILES, RUN_CODE, RUN_EXEC, RUN_STOP, RUN_STEP_MAX };

struct run {
    struct request *request;        /* NULL: answered with channels */
    const struct run_request *body; /* the same */
    bool keep;                      /* the sandbox outlives the run */
    enum run_step step;
    bool cancelled;
    struct create_request create_body; /* borrows from the body */
    struct creation *creation;         /* in RUN_CREATE */
    struct sandbox *sandbox;           /* one reference, from RUN_FILES on */
    size_t next_file;                  /* of body->files */
    struct text_list argv;
    struct program *program;  /* in RUN_EXEC */
    struct live_output *live; /* instead, when it is streamed */
    struct exec_reply reply;  /* of the program, owned */
    struct sandbox_error err; /* of the step that failed; SANDBOX_OK: none */
    struct stop_wait end;
};

struct run_language {
    const char *name;
    const char *program;
    const char *file;
};

static const struct run_language languages[] = {
    { "node", "node", "/tmp/run.js" },       { "js", "node", "/tmp/run.js" },
    { "javascript", "node", "/tmp/run.js" }, { "python", "python3", "/tmp/run.py" },
    { "py", "python3", "/tmp/run.py" },      { "shell", "/bin/sh", "/tmp/run.sh" },
    { "sh", "/bin/sh", "/tmp/run.sh" },      { "bash", "/bin/sh", "/tmp/run.sh" },
};

/* Any other name is itself the program. */
static struct run_language run_language(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
        if (strcmp(languages[i].name, name) == 0)
            return languages[i];
    }
    return (struct run_language){ .name = name, .program = name, .file = "/tmp/run.txt" };
}

static void run_next(struct run *run, enum run_step step);

static void run_free(struct run *run)
{
    if (!run)
        return;
    live_output_free(run->live);
    sandbox_unref(run->sandbox);
    text_list_done(&run->argv);
    codec_free(&type_exec_reply, &run->reply);
    sandbox_error_done(&run->err);
    free(run);
}
DEFINE_CLEANUP(struct run *, run_free)

/* The answer. */

static void run_reply(struct run *run)
{
    const struct exec_reply *from = &run->reply;
    struct run_reply reply = {
        .stdout = from->stdout,
        .stderr = from->stderr,
        .has_exit_code = from->has_exit_code,
        .exit_code = from->exit_code,
        .timed_out = from->timed_out,
        .duration_ms = from->duration_ms,
        .success = from->success,
        .stdout_truncated = from->stdout_truncated,
        .stderr_truncated = from->stderr_truncated,
        .has_sandbox_id = run->keep,
        .sandbox_id = (char *)sandbox_id(run->sandbox),
    };

    if (run->request)
        request_reply(run->request, &reply);
    else
        live_output_finish(take_ptr(run->live), &type_run_reply, &reply);
}

static void run_fail(struct run *run)
{
    if (run->request)
        request_fail(run->request, &run->err);
    else
        live_output_fail(take_ptr(run->live), &run->err);
}

static void run_answer(struct run *run)
{
    if (run->request)
        request_on_cancel(run->request, NULL, NULL);
    if (run->request && run->keep && run->sandbox)
        request_tells_of(run->request, sandbox_id(run->sandbox));
    if (run->err.code == SANDBOX_OK)
        run_reply(run);
    else
        run_fail(run);
    run_free(run);
}

/* The error of a step: the inner one with the step around it. */

static void set_step_error(struct sandbox_error *inner, const char *step, const char *id,
                           struct sandbox_error *ret_err)
{
    char context[96];

    (void)sandbox_error_set(ret_err, inner->code, "sandbox::run step `%s` (sandbox %s): %s",
                            step, id, inner->message);
    sandbox_error_set_outcome(ret_err, inner->outcome);
    sandbox_error_set_partial(ret_err, take_ptr(inner->partial));
    (void)snprintf(context, sizeof(context), "during sandbox::run step `%s`", step);
    sandbox_error_add_fix_text(ret_err, "context", context);
    sandbox_error_add_fix_text(ret_err, "sandbox_id", id);
    sandbox_error_add_fix_text(ret_err, "inner_code", error_info_get(inner->code)->code);
    sandbox_error_set_note(ret_err, "%s", "");
}

static void run_step_failed(struct run *run, struct sandbox_error *err)
{
    static const char *const names[] = {
        [RUN_CREATE] = "create",
        [RUN_FILES] = "fs::write (sibling file)",
        [RUN_CODE] = "fs::write (code)",
        [RUN_EXEC] = "exec",
    };
    static_assert(ARRAY_SIZE(names) == RUN_STOP, "a name for each step that can fail");

    set_step_error(err, names[run->step], run->sandbox ? sandbox_id(run->sandbox) : "",
                   &run->err);
    if (run->sandbox)
        run_next(run, RUN_STOP);
    else
        run_answer(run);
}

/* create */

static void on_created(void *ctx, struct sandbox *own_sandbox, struct sandbox_error *err)
{
    struct run *run = ctx;

    run->creation = NULL;
    run->sandbox = own_sandbox;
    if (err)
        run_step_failed(run, err);
    else
        run_next(run, RUN_FILES);
}

/* fs::write */

static void run_upload(struct run *run, const char *path, const struct blob *content,
                       upload_done_fn done)
{
    const struct upload_spec spec = {
        .path = path,
        .mode = "0644",
        .parents = true,
        .data = (const uint8_t *)content->data,
        .size = content->size,
    };

    (void)upload_start(run->sandbox, &spec, done,
                       run); /* a cancelled run ends with its sandbox */
}

static void on_file_written(void *ctx, uint64_t bytes_written, struct sandbox_error *err)
{
    struct run *run = ctx;

    if (err)
        run_step_failed(run, err);
    else
        run_next(run, RUN_FILES);
}

static void run_files(struct run *run)
{
    const struct run_file_list *files = &run->body->files;
    const struct run_file *file;

    if (run->next_file == files->count) {
        run_next(run, RUN_CODE);
        return;
    }
    file = &files->items[run->next_file++];
    run_upload(run, file->path, &file->content, on_file_written);
}

static void on_code_written(void *ctx, uint64_t bytes_written, struct sandbox_error *err)
{
    struct run *run = ctx;

    if (err)
        run_step_failed(run, err);
    else
        run_next(run, RUN_EXEC);
}

/* exec */

static void on_program_done(void *ctx, struct exec_reply *reply, struct sandbox_error *err)
{
    struct run *run = ctx;

    run->program = NULL;
    if (err) {
        run_step_failed(run, err);
        return;
    }
    run->reply = *reply;
    *reply = (struct exec_reply){ 0 };
    run_next(run, RUN_STOP);
}

static struct program_spec spec_of(const struct run *run)
{
    return (struct program_spec){
        .argv = &run->argv,
        .env = &run->body->env,
        .stdin_b64 = run->body->stdin,
        .timeout_ms = run->body->timeout_ms,
    };
}

static void on_opened(void *ctx, struct sandbox_error *err)
{
    struct run *run = ctx;
    const struct channel_ref *input = run->body->has_stdin_stream ? &run->body->stdin_stream
                                                                  : NULL;
    const struct program_spec spec = spec_of(run);
    struct sandbox_error own = { 0 };

    if (err) {
        sandbox_error_set_outcome(err, OUTCOME_NEVER_RAN);
        run_step_failed(run, err);
    } else if (live_output_start(run->live, run->sandbox, &spec, input,
                                 request_settings(run->request), &own) < 0) {
        run_step_failed(run, &own);
    }
    sandbox_error_done(&own);
}

static void on_started(void *ctx)
{
    struct run *run = ctx;
    const struct exec_stream_reply reply = live_output_reply(run->live);

    request_on_cancel(run->request, NULL, NULL);
    run->body = NULL; /* goes with the request */
    request_reply_as(take_ptr(run->request), &type_exec_stream_reply, &reply);
}

static void on_cancel(void *ctx);

static int start_live(struct run *run, struct sandbox_error *err)
{
    static const struct live_output_events events = {
        .opened = on_opened,
        .started = on_started,
        .ended = on_program_done,
        .abandoned = on_cancel,
    };

    return live_output_new(request_adapter(run->request), &events, run, &run->live, err);
}

static void run_exec(struct run *run)
{
    const struct program_spec spec = spec_of(run);
    struct sandbox_error err = { 0 };
    int result;

    if (run->body->stream)
        result = start_live(run, &err);
    else
        result = program_start(run->sandbox, &spec, request_settings(run->request),
                               on_program_done, run, &run->program, &err);
    if (result < 0) {
        sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN); /* kept with S300 alone */
        run_step_failed(run, &err);
    }
    sandbox_error_done(&err);
}

/* stop */

static void on_stopped(void *ctx, struct sandbox_error *err)
{
    struct run *run = ctx;

    if (err)
        log_event(LOG_WARN, "run_not_stopped", log_text("sandbox", sandbox_id(run->sandbox)),
                  log_text("reason", err->message));
    run_answer(run);
}

static void run_stop(struct run *run)
{
    bool keep = run->keep && !run->cancelled;

    if (keep || sandbox_state(run->sandbox) == SANDBOX_GONE)
        run_answer(run);
    else
        sandbox_stop(run->sandbox, "the run that made it is over", &run->end);
}

static void run_next(struct run *run, enum run_step step)
{
    assert(step >= run->step);
    run->step = step;
    switch (step) {
    case RUN_FILES:
        run_files(run);
        break;
    case RUN_CODE:
        run_upload(run, run_language(run->body->lang).file, &run->body->code, on_code_written);
        break;
    case RUN_EXEC:
        run_exec(run);
        break;
    default:
        run_stop(run);
        break;
    }
}

/* Contract 2.4: as exec, and the sandbox is stopped. A write in flight ends with its guest. */
static void on_cancel(void *ctx)
{
    struct run *run = ctx;

    run->cancelled = true;
    if (run->creation)
        creation_cancel(run->creation, "its caller is gone");
    else if (run->program)
        program_cancel(run->program);
    else if (run->live && live_output_running(run->live))
        live_output_cancel(run->live);
    else if (run->step < RUN_STOP && sandbox_state(run->sandbox) != SANDBOX_GONE)
        sandbox_stop(run->sandbox, "its caller is gone", NULL);
}

/* What the request alone can show to be wrong. */
static int check_request(const struct run_request *body, struct sandbox_error *err)
{
    const struct live_output_keys keys = {
        .stream = body->stream,
        .stdin_b64 = body->stdin,
        .stdin_stream = body->has_stdin_stream ? &body->stdin_stream : NULL,
        .idempotency_key = body->idempotency_key,
    };
    _cleanup_(buf_done)
    struct buf decoded = { 0 };

    if (live_output_check(&keys, err) < 0)
        return -1;
    if (body->stdin && base64_decode(&decoded, body->stdin, strlen(body->stdin)) == -EINVAL)
        return sandbox_error_set(err, S001,
                                 "stdin: expected base64 (standard alphabet, padded), got "
                                 "\"%.60s\"",
                                 body->stdin);
    return env_check(&body->env, err);
}

static int run_new(struct request *request, struct run **ret_run, struct sandbox_error *err)
{
    _cleanup_(run_freep)
    struct run *run = calloc(1, sizeof(*run));
    const struct run_request *body = request_body(request);
    struct run_language language = run_language(body->lang);

    if (!run || text_list_append(&run->argv, language.program) < 0 ||
        text_list_append(&run->argv, language.file) < 0) {
        sandbox_error_set_outcome(err, OUTCOME_NEVER_RAN);
        return sandbox_error_set(err, S300, "no memory for a run");
    }
    run->request = request;
    run->body = body;
    run->keep = body->keep_sandbox;
    run->create_body = (struct create_request){ .image = body->image, .env = body->env };
    stop_wait_init(&run->end, on_stopped, run);
    *ret_run = take_ptr(run);
    return 0;
}

void handle_run(struct request *request)
{
    struct sandbox_error err = { 0 };
    struct run *run = NULL;

    if (check_request(request_body(request), &err) < 0) {
        request_fail(request, &err);
        return;
    }
    if (!idempotency_admit(request))
        return;
    if (run_new(request, &run, &err) < 0) {
        request_fail(request, &err);
        return;
    }
    request_on_cancel(request, on_cancel, run);
    if (creation_start(request, &run->create_body, on_created, run, &run->creation, &err) < 0)
        run_step_failed(run, &err);
    sandbox_error_done(&err);
}
