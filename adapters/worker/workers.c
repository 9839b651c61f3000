/* workers.c - see workers.h: the operations, the tables of what is live and what has ended, and
 * the end of all. */
#include "workers.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "libexec.h"
#include "log.h"
#include "worker_job.h"
#include "worker_keys.h"

#define HELPER "worker-files"

/* Keys. */

struct worker_key *worker_keys_find(const struct workers *workers, const char *text)
{
    LIST_FOREACH(node, &workers->keys)
    {
        struct worker_key *key = LIST_ENTRY(node, struct worker_key, node);

        if (strcmp(key->text, text) == 0)
            return key;
    }
    return NULL;
}

struct worker_key *worker_keys_add(struct workers *workers, const char *text)
{
    struct worker_key *key = calloc(1, sizeof(*key));

    if (!key)
        return NULL;
    key->workers = workers;
    (void)snprintf(key->text, sizeof(key->text), "%s", text);
    list_init(&key->waiting);
    list_append(&workers->keys, &key->node);
    return key;
}

void worker_key_changed(struct worker_key *key)
{
    struct workers *workers = key->workers;

    loop_defer(workers->loop, &workers->judge);
    if (workers->stopped)
        loop_notify(workers->loop, &workers->check);
    if (key->job)
        return;
    list_move_all(&workers->calls, &key->waiting);
    if (!key->live) {
        list_remove(&key->node);
        free(key);
    }
}

/* Those that waited are judged as if they came now; who finds the key taken again waits on. */
static void on_judge(void *ctx)
{
    struct workers *workers = ctx;
    struct list calls, *node;

    list_init(&calls);
    list_move_all(&calls, &workers->calls);
    while ((node = list_pop(&calls)))
        worker_call_judge(LIST_ENTRY(node, struct worker_call, node));
}

/* Ended workers. */

void workers_forget(struct worker *worker)
{
    assert(worker->state == WORKER_EXITED);
    worker->workers->exited_count--;
    worker_free(worker);
}

/* Those that ended an hour ago; the list is in the order of their beginnings, not ends. */
static void forget_old(struct workers *workers)
{
    uint64_t now_ms = loop_now_ms(workers->loop);

    LIST_FOREACH(node, &workers->all)
    {
        struct worker *worker = LIST_ENTRY(node, struct worker, node);

        if (worker->state == WORKER_EXITED &&
            now_ms - worker->ended_ms >= WORKERS_EXITED_KEEP_MS)
            workers_forget(worker);
    }
}

static struct worker *first_ended(struct workers *workers)
{
    struct worker *first = NULL;

    LIST_FOREACH(node, &workers->all)
    {
        struct worker *worker = LIST_ENTRY(node, struct worker, node);

        if (worker->state == WORKER_EXITED && (!first || worker->ended_ms < first->ended_ms))
            first = worker;
    }
    return first;
}

void workers_remember(struct worker *worker)
{
    struct workers *workers = worker->workers;

    worker->ended_ms = loop_now_ms(workers->loop);
    workers->exited_count++;
    if (workers->exited_count > WORKERS_EXITED_MAX)
        workers_forget(first_ended(workers));
}

/* Checks. */

void worker_add_fix(const struct worker *worker, struct sandbox_error *err)
{
    sandbox_error_add_fix_text(err, "vm_id", worker->id);
    sandbox_error_add_fix_text(err, "instance", worker->instance);
}

int worker_check_token(const struct worker *worker, const struct request *request,
                       const char *token, struct sandbox_error *err)
{
    if (token_matches(&worker->token, token))
        return 0;
    return sandbox_error_set(err, S505, "%s: auth token does not match",
                             request_operation_name(request));
}

int worker_check_instance(const struct worker *worker, const char *instance,
                          struct sandbox_error *err)
{
    if (strcmp(worker->instance, instance) == 0)
        return 0;
    (void)sandbox_error_set(err, S503, "instance %s is not that of the live VM", instance);
    worker_add_fix(worker, err);
    return -1;
}

static int check_state_key(const char *key, struct sandbox_error *err)
{
    static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                               "._-";

    if (*key != '.' && key[strspn(key, rest)] == 0)
        return 0;
    return sandbox_error_set(
        err, S001, "state_key: expected [A-Za-z0-9_-][A-Za-z0-9._-]{0,127}, got \"%s\"", key);
}

static int check_env(const struct env *env, struct sandbox_error *err)
{
    if (env_check(env, err) < 0)
        return -1;
    for (size_t i = 0; i < env->count; i++) {
        const char *name = env->entries[i].name;

        if (manifest_name_reserved(name, strlen(name)))
            return sandbox_error_set(err, S001,
                                     "env: %s is set by the adapter and may not be "
                                     "given",
                                     name);
    }
    return 0;
}

static int check_new(const char *host_path, const char *state_key, const struct env *env,
                     struct sandbox_error *err)
{
    if (host_path[0] != '/')
        return sandbox_error_set(err, S001,
                                 "source.host_path: expected an absolute path, got \"%.200s\"",
                                 host_path);
    if (check_state_key(state_key, err) < 0)
        return -1;
    return check_env(env, err);
}

/* The VM of vm_id. S505, S504, then S503 for an INSTANCE that is given. */
static int find(struct workers *workers, struct request *request, const char *vm_id,
                const char *token, const char *instance, struct worker **ret_worker,
                struct sandbox_error *err)
{
    forget_old(workers);
    LIST_FOREACH(node, &workers->all)
    {
        struct worker *worker = LIST_ENTRY(node, struct worker, node);

        if (strcmp(worker->id, vm_id) != 0)
            continue;
        *ret_worker = worker;
        if (worker_check_token(worker, request, token, err) < 0)
            return -1;
        return instance ? worker_check_instance(worker, instance, err) : 0;
    }
    return sandbox_error_set(err, S504, "no worker VM has the vm_id \"%s\"", vm_id);
}

/* The operations. Each answers, or sets ERR and returns -1. */

static int begin_call(struct workers *workers, struct request *request,
                      struct sandbox_error *err)
{
    struct worker_call *call = calloc(1, sizeof(*call));

    if (!call)
        return sandbox_error_set(err, S300, "no memory for the call");
    call->workers = workers;
    call->request = request;
    call->began_ms = loop_now_ms(workers->loop);
    list_init(&call->node);
    worker_call_judge(call);
    return 0;
}

static int serve_prepare(struct workers *workers, struct request *request,
                         struct sandbox_error *err)
{
    const struct worker_prepare_request *body = request_body(request);

    if (check_new(body->source.host_path, body->state_key, &body->env, err) < 0)
        return -1;
    return begin_call(workers, request, err);
}

static int serve_start(struct workers *workers, struct request *request,
                       struct sandbox_error *err)
{
    const struct worker_start_request *body = request_body(request);

    if (check_new(body->source.host_path, body->state_key, &body->env, err) < 0)
        return -1;
    return begin_call(workers, request, err);
}

static int serve_status(struct workers *workers, struct request *request,
                        struct sandbox_error *err)
{
    const struct worker_status_request *body = request_body(request);
    struct worker *worker;
    struct worker_status_reply reply;

    if (find(workers, request, body->vm_id, body->auth_token, body->instance, &worker, err) < 0)
        return -1;
    reply = (struct worker_status_reply){
        .vm_id = worker->id,
        .instance = worker->instance,
        .state = (char *)worker_state_text(worker),
        .has_exit_code = worker->has_exit_code,
        .exit_code = worker->exit_code,
        .started_at = worker->started_at,
        .restarts = worker_restarts(worker),
    };
    request_reply(request, &reply);
    return 0;
}

static int serve_stop(struct workers *workers, struct request *request,
                      struct sandbox_error *err)
{
    const struct worker_stop_request *body = request_body(request);
    struct worker_stop *stop;
    struct worker *worker;

    if (find(workers, request, body->vm_id, body->auth_token, body->instance, &worker, err) < 0)
        return -1;
    if (worker->state == WORKER_EXITED) {
        struct worker_stop_reply reply = {
            .vm_id = worker->id,
            .instance = worker->instance,
            .stopped = true,
        };

        request_reply(request, &reply);
        workers_forget(worker);
        return 0;
    }
    stop = calloc(1, sizeof(*stop));
    if (!stop)
        return sandbox_error_set(err, S300, "worker %s: no memory to stop it", worker->id);
    stop->request = request;
    worker_await_end(worker, stop);
    worker_stop(worker, body->timeout_ms);
    return 0;
}

static int serve_logs(struct workers *workers, struct request *request,
                      struct sandbox_error *err)
{
    const struct worker_logs_request *body = request_body(request);
    _cleanup_(buf_done)
    struct buf text = { 0 };
    struct worker_logs_reply reply = { 0 };
    struct worker *worker;
    int result;

    if (find(workers, request, body->vm_id, body->auth_token, NULL, &worker, err) < 0)
        return -1;
    result = worker_log_tail(&worker->log, body->tail_bytes, &text, &reply.truncated);
    if (result == 0 && !buf_text(&text))
        result = -ENOMEM;
    if (result < 0)
        return sandbox_error_set(err, S300, "worker %s: its log cannot be read: %s", worker->id,
                                 strerror(-result));
    reply.text = (struct blob){ .data = (char *)text.data, .size = text.size };
    request_reply(request, &reply);
    return 0;
}

static int serve_list(struct workers *workers, struct request *request,
                      struct sandbox_error *err)
{
    struct worker_list_reply reply = { 0 };
    size_t count = 0;

    forget_old(workers);
    LIST_FOREACH(node, &workers->all)
    count++;
    reply.items.items = calloc(count ? count : 1, sizeof(*reply.items.items));
    if (!reply.items.items)
        return sandbox_error_set(err, S300, "no memory for the list");
    LIST_FOREACH(node, &workers->all)
    {
        struct worker *worker = LIST_ENTRY(node, struct worker, node);

        reply.items.items[reply.items.count++] = (struct worker_entry){
            .vm_id = worker->id,
            .instance = worker->instance,
            .state_key = worker->state_key,
            .name = worker->name,
            .state = (char *)worker_state_text(worker),
            .started_at = worker->started_at,
        };
    }
    request_reply(request, &reply);
    free(reply.items.items); /* its texts are the workers' */
    return 0;
}

typedef int (*worker_operation_fn)(struct workers *workers, struct request *request,
                                   struct sandbox_error *err);

static const struct {
    enum operation_id id;
    worker_operation_fn serve;
} operations_served[] = {
    { OP_worker_prepare, serve_prepare }, { OP_worker_start, serve_start },
    { OP_worker_status, serve_status },   { OP_worker_stop, serve_stop },
    { OP_worker_list, serve_list },       { OP_worker_logs, serve_logs },
};

/* Life. */

static void on_check(void *ctx)
{
    struct workers *workers = ctx;
    void (*stopped)(void *ctx) = workers->stopped;

    LIST_FOREACH(node, &workers->keys)
    {
        struct worker_key *key = LIST_ENTRY(node, struct worker_key, node);

        if (key->job || (key->live && key->live->state != WORKER_STUCK))
            return;
    }
    if (!stopped)
        return;
    workers->stopped = NULL;
    stopped(workers->stopped_ctx);
}

void workers_stop_all(struct workers *workers, void (*done)(void *ctx), void *ctx)
{
    if (!workers) {
        done(ctx);
        return;
    }
    workers->ending = true;
    workers->stopped = done;
    workers->stopped_ctx = ctx;
    LIST_FOREACH(node, &workers->keys)
    {
        struct worker_key *key = LIST_ENTRY(node, struct worker_key, node);

        if (key->live)
            worker_stop(key->live, WORKERS_STOP_MS);
        else if (key->job)
            worker_job_abort(key->job, "the adapter was shut down");
    }
    loop_notify(workers->loop, &workers->check);
}

static int workers_new(struct adapter *adapter, const char *form, struct workers **ret_workers)
{
    struct workers *workers = calloc(1, sizeof(*workers));
    int result;

    if (!workers)
        return -ENOMEM;
    workers->adapter = adapter;
    workers->loop = adapter_loop(adapter);
    workers->form = form;
    list_init(&workers->all);
    list_init(&workers->keys);
    list_init(&workers->calls);
    loop_notice_init(&workers->judge, on_judge, workers);
    loop_notice_init(&workers->check, on_check, workers);
    workers->program = libexec_find(HELPER);
    result = workers->program ? registry_new(adapter, &workers->registry) : -ENOENT;
    if (result < 0) {
        workers_free(workers);
        return result;
    }
    *ret_workers = workers;
    return 0;
}

/* A VM that could not be killed keeps what it uses; it dies with the process. */
void workers_free(struct workers *workers)
{
    if (!workers)
        return;
    loop_notice_cancel(workers->loop, &workers->judge);
    loop_notice_cancel(workers->loop, &workers->check);
    free(workers->program);
    if (workers->registry && registry_count(workers->registry) > 0)
        return;
    LIST_FOREACH(node, &workers->all)
    worker_free(LIST_ENTRY(node, struct worker, node));
    registry_free(workers->registry);
    free(workers);
}

/* Serving. */

/* The row of OPERATION; NULL: it is none of ours. */
static worker_operation_fn operation_row(const char *operation)
{
    for (size_t i = 0; i < ARRAY_SIZE(operations_served); i++) {
        if (strcmp(operation, operations[operations_served[i].id].name) == 0)
            return operations_served[i].serve;
    }
    return NULL;
}

bool workers_serve(struct workers **workers, const char *form, const char *operation,
                   struct request *request)
{
    worker_operation_fn serve = operation_row(operation);
    struct sandbox_error err = { 0 };
    int result;

    if (!serve)
        return false;
    result = *workers ? 0 : workers_new(request_adapter(request), form, workers);
    if (result < 0)
        (void)sandbox_error_set(&err, S300, HELPER ": %s", strerror(-result));
    if (result < 0 || serve(*workers, request, &err) < 0)
        request_fail(request, &err);
    return true;
}
