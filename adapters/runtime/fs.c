/* fs.c - see fs.h; and the operations that are one question and one answer: ls, stat, mkdir,
 * rm, chmod, mv, grep, sed. */
#include "fs.h"

#include <assert.h>
#include <string.h>

#include "codec.h"
#include "envelope.h"
#include "handlers.h"
#include "sandboxes.h"
#include "serve.h"

/* So many entries, all of the longest names that JSON can make, are below the smallest
 * max_message_bytes. */
#define LS_COUNT_THAT_FITS 4096u

/* The way to the sandbox. */

int fs_find(struct request *request, const char *sandbox_id, struct sandbox **ret_sandbox,
            struct sandbox_error *err)
{
    struct registry *registry = sandboxes_registry(adapter_sandboxes(request_adapter(request)));
    char id[UUID_TEXT_BYTES];

    if (sandbox_read_id(sandbox_id, id, err) < 0 ||
        registry_find(registry, id, ret_sandbox, err) < 0)
        return -1;
    return sandbox_check_open(*ret_sandbox, err);
}

static void on_ready(void *ctx, struct sandbox_error *err)
{
    struct fs_visit *visit = ctx;
    struct sandbox_error lost = { 0 };

    if (!err) {
        sandbox_touch(visit->sandbox);
        visit->begin(visit->ctx);
        return;
    }
    (void)fs_set_lost(visit->sandbox, visit->path, err->message, &lost);
    visit->failed(visit->ctx, &lost);
    sandbox_error_done(&lost);
}

void fs_enter(struct fs_visit *visit, struct sandbox *sandbox)
{
    visit->sandbox = sandbox_ref(sandbox);
    sandbox_wait_init(&visit->boot, on_ready, visit);
    sandbox_when_ready(sandbox, &visit->boot);
}

void fs_leave(struct fs_visit *visit)
{
    if (!visit->sandbox)
        return;
    sandbox_touch(visit->sandbox);
    sandbox_wait_cancel(&visit->boot);
    sandbox_unref(take_ptr(visit->sandbox));
}

int fs_set_lost(const struct sandbox *sandbox, const char *path, const char *reason,
                struct sandbox_error *err)
{
    return sandbox_error_set(err, S216, "%s: shell client error: %s", path,
                             sandbox_lost_cause(sandbox, reason));
}

void fs_map_error(const char *path, struct sandbox_error *err)
{
    struct sandbox_error io = { 0 };

    if (err->code != S300)
        return;
    (void)sandbox_error_set(&io, S216, "%s: S300: %s", path, err->message);
    sandbox_error_done(err);
    sandbox_error_move(err, &io);
}

void fs_answer_nobody(struct request *request, const char *path)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S216, "%s: its caller is gone", path);
    request_on_cancel(request, NULL, NULL);
    request_fail(request, &err);
    sandbox_error_done(&err);
}

/* One question, one answer. */

struct fs_call {
    struct request *request; /* NULL: its caller has left, the guest goes on */
    enum guest_operation_id operation;
    struct fs_visit visit;
    struct agent_call *call; /* NULL: not begun, or over */
};

static void call_free(struct fs_call *call)
{
    fs_leave(&call->visit);
    free(call);
}

static void call_fail(struct fs_call *call, struct sandbox_error *err)
{
    request_on_cancel(call->request, NULL, NULL);
    request_fail(call->request, err);
    call_free(call);
}

static void on_failed(void *ctx, struct sandbox_error *err)
{
    call_fail(ctx, err);
}

/* Contract 8.2. Most lists are so short that nothing has to be measured. */
static int check_ls_fits(const struct fs_call *call, const struct fs_ls_reply *reply,
                         struct sandbox_error *err)
{
    size_t max = serve_max_message_bytes(adapter_serve(request_adapter(call->request)));
    _cleanup_(buf_done)
    struct buf json = { .limit = max - ENVELOPE_HEAD_MAX };

    if (reply->entries.count < LS_COUNT_THAT_FITS ||
        codec_encode_json(&type_fs_ls_reply, reply, false, &json) == 0)
        return 0;
    return sandbox_error_set(err, S216, "%s has %zu entries, more than fit in a message",
                             call->visit.path, reply->entries.count);
}

static void call_answer(struct fs_call *call, const void *reply, struct sandbox_error *err,
                        bool lost)
{
    struct sandbox_error own = { 0 };

    if (call->operation == GUEST_fs_ls && reply && check_ls_fits(call, reply, &own) < 0) {
        call_fail(call, &own);
    } else if (reply) {
        request_on_cancel(call->request, NULL, NULL);
        request_reply(call->request, reply);
        call_free(call);
    } else if (lost) {
        (void)fs_set_lost(call->visit.sandbox, call->visit.path, err->message, &own);
        call_fail(call, &own);
    } else {
        fs_map_error(call->visit.path, err);
        call_fail(call, err);
    }
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct fs_call *call = ctx;

    call->call = NULL;
    if (call->request)
        call_answer(call, reply, err, lost);
    else
        call_free(call);
}

/* The guest may take as long as it likes, and a hostile one takes for ever: what it owes nobody
 * is not to hold a request, its body, and a place in the router. */
static void call_let_go(struct fs_call *call)
{
    fs_answer_nobody(take_ptr(call->request), call->visit.path);
    call->visit.path = NULL;
}

static void on_begin(void *ctx)
{
    static const struct agent_call_events events = { .ended = on_ended };
    struct fs_call *call = ctx;
    struct sandbox_error err = { 0 }, lost = { 0 };

    if (sandbox_call(call->visit.sandbox, call->operation, request_body(call->request), &events,
                     call, &call->call, &err) == 0) {
        if (request_cancelled(call->request))
            call_let_go(call);
        return;
    }
    (void)fs_set_lost(call->visit.sandbox, call->visit.path, err.message, &lost);
    sandbox_error_done(&err);
    call_fail(call, &lost);
}

/* Only a search stops when nobody wants it (contract 2.4); it still ends by itself, as what
 * waits for its sandbox is still carried out. */
static void on_cancel(void *ctx)
{
    struct fs_call *call = ctx;

    if (call->call && call->operation == GUEST_fs_grep)
        agent_call_cancel(call->call);
    if (call->call) {
        call_let_go(call);
    } else if (call->operation == GUEST_fs_grep) {
        fs_answer_nobody(call->request, call->visit.path);
        call_free(call);
    }
}

static void fs_forward(struct request *request, enum guest_operation_id operation,
                       const char *sandbox_id, const char *path)
{
    struct sandbox_error err = { 0 };
    struct sandbox *sandbox;
    struct fs_call *call = NULL;

    if (fs_find(request, sandbox_id, &sandbox, &err) == 0) {
        call = calloc(1, sizeof(*call));
        if (!call)
            (void)sandbox_error_set(&err, S216, "%s: no memory", path);
    }
    if (!call) {
        request_fail(request, &err);
        return;
    }
    call->request = request;
    call->operation = operation;
    call->visit = (struct fs_visit){
        .request = request,
        .path = path,
        .begin = on_begin,
        .failed = on_failed,
        .ctx = call,
    };
    request_on_cancel(request, on_cancel, call);
    fs_enter(&call->visit, sandbox);
}

/* The operations. */

void handle_fs_ls(struct request *request)
{
    const struct fs_ls_request *body = request_body(request);

    fs_forward(request, GUEST_fs_ls, body->sandbox_id, body->path);
}

void handle_fs_stat(struct request *request)
{
    const struct fs_stat_request *body = request_body(request);

    fs_forward(request, GUEST_fs_stat, body->sandbox_id, body->path);
}

void handle_fs_mkdir(struct request *request)
{
    const struct fs_mkdir_request *body = request_body(request);

    fs_forward(request, GUEST_fs_mkdir, body->sandbox_id, body->path);
}

void handle_fs_rm(struct request *request)
{
    const struct fs_rm_request *body = request_body(request);

    fs_forward(request, GUEST_fs_rm, body->sandbox_id, body->path);
}

void handle_fs_chmod(struct request *request)
{
    const struct fs_chmod_request *body = request_body(request);

    fs_forward(request, GUEST_fs_chmod, body->sandbox_id, body->path);
}

void handle_fs_mv(struct request *request)
{
    const struct fs_mv_request *body = request_body(request);

    fs_forward(request, GUEST_fs_mv, body->sandbox_id, body->src);
}

void handle_fs_grep(struct request *request)
{
    const struct fs_grep_request *body = request_body(request);

    fs_forward(request, GUEST_fs_grep, body->sandbox_id, body->path);
}

/* Contract 4.4: which files are meant is settled between the id's form and its look-up. */
static int check_sed(const struct fs_sed_request *body, struct sandbox_error *err)
{
    char id[UUID_TEXT_BYTES];

    if (sandbox_read_id(body->sandbox_id, id, err) < 0)
        return -1;
    if ((body->files.count > 0) != (body->path != NULL))
        return 0;
    return sandbox_error_set(err, S210, "files, path: expected exactly one of them, got %s",
                             body->path ? "both" : "neither");
}

void handle_fs_sed(struct request *request)
{
    const struct fs_sed_request *body = request_body(request);
    struct sandbox_error err = { 0 };

    if (check_sed(body, &err) < 0)
        request_fail(request, &err);
    else
        fs_forward(request, GUEST_fs_sed, body->sandbox_id,
                   body->path ? body->path : body->files.items[0]);
}
