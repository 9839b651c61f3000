/* worker_job.c - see worker_job.h. */
#include "worker_job.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "log.h"
#include "worker.h"

/* Each state is left only forwards; where nothing is to be prepared, the three in the middle
 * are left out. */
enum job_state {
    JOB_LOCKING,    /* the lock is tried until it is ours */
    JOB_PACKING,    /* worker-files source */
    JOB_COPYING,    /* worker-files next */
    JOB_PREPARING,  /* a VM on next/ runs setup and install */
    JOB_PUBLISHING, /* worker-files publish: next/ becomes state/ */
    JOB_BOOTING,    /* of a start: the worker has the lock and boots */
    JOB_STATE_MAX
};

/* The two scripts of a preparation, in order. */
static const struct {
    const char *name;
    size_t offset; /* in struct manifest */
} scripts[] = {
    { "setup", offsetof(struct manifest, setup) },
    { "install", offsetof(struct manifest, install) },
};

struct worker_job {
    struct worker_key *key;
    struct worker_call *call;
    struct worker *worker; /* of a start; NULL: a prepare */
    enum job_state state;
    struct source_folder source;
    struct state_mark mark;
    bool prepare;
    uint32_t cpus;
    uint32_t memory_mb;
    struct state_folder folder;
    struct loop_timer *timer; /* of the lock */
    uint64_t lock_until_ms;
    struct loop_notice begin; /* the first try of the lock */
    struct loop_notice over;  /* it was aborted */

    struct worker_task *task;
    struct worker_vm *vm; /* that prepares */
    struct worker_script *script;
    size_t script_index;
    uint64_t scripts_until_ms; /* deadline of both; 0: none has begun */
    struct text_list env;
    struct capture captures[2];
    char *data_path, *source_path;
    struct machine_lasting lasting;

    bool failed;
    struct sandbox_error failure; /* the first */
};

static void job_set_state(struct worker_job *job, enum job_state state)
{
    static const char *const names[] = {
        "locking", "packing", "copying", "preparing", "publishing", "booting",
    };
    static_assert(ARRAY_SIZE(names) == JOB_STATE_MAX, "a name for each state");

    assert(state >= job->state);
    log_event(LOG_DEBUG, "worker_job_state", log_text("state_key", job->key->text),
              log_text("from", names[job->state]), log_text("to", names[state]));
    job->state = state;
}

static struct workers *job_workers(const struct worker_job *job)
{
    return job->key->workers;
}

static const struct adapter_settings *job_settings(const struct worker_job *job)
{
    return request_settings(job->call->request);
}

static void job_free(struct worker_job *job)
{
    loop_notice_cancel(job_workers(job)->loop, &job->begin);
    loop_notice_cancel(job_workers(job)->loop, &job->over);
    worker_task_free(job->task);
    worker_script_free(job->script);
    worker_vm_free(job->vm);
    loop_timer_free(job->timer);
    source_folder_done(&job->source);
    state_folder_done(&job->folder);
    text_list_done(&job->env);
    capture_done(&job->captures[0]);
    capture_done(&job->captures[1]);
    free(job->data_path);
    free(job->source_path);
    sandbox_error_done(&job->failure);
    free(job->call);
    free(job);
}

/* The answer. */

static void reply_prepared(const struct worker_job *job)
{
    struct worker_prepare_reply reply = {
        .state_key = job->key->text,
        .prepared = true,
        .cached = false,
        .duration_ms = loop_now_ms(job_workers(job)->loop) - job->call->began_ms,
    };

    request_reply(job->call->request, &reply);
}

static void reply_started(const struct worker_job *job)
{
    struct worker_start_reply reply = {
        .vm_id = job->worker->id,
        .instance = job->worker->instance,
        .state = (char *)"running",
    };

    request_reply(job->call->request, &reply);
}

/* A worker that never got as far as its VM is no more. */
static void job_drop_worker(struct worker_job *job)
{
    struct worker *worker = take_ptr(job->worker);
    struct list *node;

    job->key->live = NULL;
    while ((node = list_pop(&worker->stops))) {
        struct worker_stop *stop = LIST_ENTRY(node, struct worker_stop, node);
        struct worker_stop_reply reply = {
            .vm_id = worker->id,
            .instance = worker->instance,
            .stopped = true,
        };

        request_reply(stop->request, &reply);
        free(stop);
    }
    worker_free(worker);
}

/* ERR: NULL, or the answer. */
static void job_finish(struct worker_job *job, struct sandbox_error *err)
{
    struct worker_key *key = job->key;
    bool handed_over = job->state == JOB_BOOTING;

    if (err)
        request_fail(job->call->request, err);
    else if (job->worker)
        reply_started(job);
    else
        reply_prepared(job);
    if (!handed_over) {
        (void)state_folder_set_holder(&job->folder, NULL); /* only for messages */
        job_workers(job)->places--;
        if (job->worker)
            job_drop_worker(job);
    }
    key->job = NULL;
    job_free(job);
    worker_key_changed(key);
}

/* Ends with the first failure, or as one that succeeded. */
static void job_over(struct worker_job *job)
{
    job_finish(job, job->failed ? &job->failure : NULL);
}

static void job_fail(struct worker_job *job, enum sandbox_code code, const char *step,
                     const char *why)
{
    if (job->failed)
        return;
    job->failed = true;
    (void)sandbox_error_set(&job->failure, code, "state_key %s, %s: %s", job->key->text, step,
                            why);
    sandbox_error_set_outcome(&job->failure, OUTCOME_NEVER_RAN);
}

/* Helper programs. */

/* What a step that ended leads to. */
static void job_packed(struct worker_job *job);
static void job_copied(struct worker_job *job);
static void job_published(struct worker_job *job);

static const struct {
    const char *word; /* of worker-files; NULL: this state has no helper */
    void (*done)(struct worker_job *job);
} steps[] = {
    [JOB_PACKING] = { "source", job_packed },
    [JOB_COPYING] = { "next", job_copied },
    [JOB_PUBLISHING] = { "publish", job_published },
    [JOB_BOOTING] = { NULL, NULL },
};
static_assert(ARRAY_SIZE(steps) == JOB_STATE_MAX, "a row for each state");

static void job_too_large(struct worker_job *job)
{
    job->failed = true;
    (void)sandbox_error_set(&job->failure, S501, "%s: packed it exceeds max_source_mb %u",
                            job->source.path, job_settings(job)->max_source_mb);
}

static void on_task(void *ctx, int status, const char *errors)
{
    struct worker_job *job = ctx;
    const char *word = steps[job->state].word;

    job->task = NULL;
    if (status == WORKER_TASK_TOO_LARGE && job->state == JOB_PACKING)
        job_too_large(job);
    else if (status != 0)
        job_fail(job, S300, word, errors[0] ? errors : "the helper was killed");
    if (job->failed)
        job_over(job);
    else
        steps[job->state].done(job);
}

static void job_run_step(struct worker_job *job, enum job_state state, const char *value)
{
    const struct workers *workers = job_workers(job);
    const struct worker_task_spec spec = {
        .program = workers->program,
        .words = { steps[state].word, workers->form, job->folder.path, value },
        .lock_fd = job->folder.lock_fd,
        .source_fd = state == JOB_PACKING ? job->source.fd : -1,
    };
    int result;

    job_set_state(job, state);
    result = worker_task_start(workers->loop, &spec, on_task, job, &job->task);
    if (result == 0)
        return;
    job_fail(job, S300, steps[state].word, strerror(-result));
    job_over(job);
}

static void job_run_number(struct worker_job *job, enum job_state state, uint32_t number)
{
    char value[16];

    (void)snprintf(value, sizeof(value), "%u", number);
    job_run_step(job, state, value);
}

/* The end of a preparation: what was written is in next/, and the VM is off. */
static void job_publish(struct worker_job *job)
{
    _cleanup_free_ char *mark = state_mark_text(&job->mark);

    if (mark) {
        job_run_step(job, JOB_PUBLISHING, mark);
        return;
    }
    job_fail(job, S300, "publish", "no memory");
    job_over(job);
}

/* Setup and install. */

static void job_next_script(struct worker_job *job);

/* S506 with the tails of both streams. */
static void job_script_failed(struct worker_job *job, const char *why)
{
    if (job->failed)
        return;
    job->failed = true;
    (void)sandbox_error_set(&job->failure, S506, "state_key %s, script %s %s", job->key->text,
                            scripts[job->script_index].name, why);
    sandbox_error_set_partial(&job->failure, capture_partial(job->captures));
}

static uint64_t job_timeout_ms(const struct worker_job *job)
{
    const struct worker_prepare_request *body = request_body(job->call->request);

    return job->worker ? WORKER_PREPARE_MS : body->timeout_ms;
}

static void on_script_ended(void *ctx, enum worker_script_end end, int32_t code,
                            const char *lost)
{
    struct worker_job *job = ctx;
    char why[96];

    job->script = NULL;
    if (end == SCRIPT_LOST) {
        job_fail(job, S300, scripts[job->script_index].name, lost);
        sandbox_error_set_outcome(&job->failure, OUTCOME_MAY_HAVE_RUN);
    } else if (end == SCRIPT_TIMED_OUT) {
        (void)snprintf(why, sizeof(why), "passed the timeout of %" PRIu64 " ms",
                       job_timeout_ms(job));
        job_script_failed(job, why);
    } else if (code != 0) {
        (void)snprintf(why, sizeof(why), "ended with exit code %d", code);
        job_script_failed(job, why);
    }
    if (job->failed) {
        worker_vm_stop(job->vm, "its preparation failed", false);
        return;
    }
    job->script_index++;
    job_next_script(job);
}

static const char *job_script(const struct worker_job *job, size_t index)
{
    const char *text = *(char *const *)((const char *)&job->source.manifest +
                                        scripts[index].offset);

    return text && *text ? text : NULL;
}

/* What is left of the deadline, at least 1 ms. */
static uint64_t job_left_ms(struct worker_job *job)
{
    uint64_t now_ms = loop_now_ms(job_workers(job)->loop);

    if (job->scripts_until_ms == 0)
        job->scripts_until_ms = now_ms + job_timeout_ms(job);
    return job->scripts_until_ms > now_ms ? job->scripts_until_ms - now_ms : 1;
}

static void job_tell_script(struct worker_job *job)
{
    char json[64];
    int size = snprintf(json, sizeof(json), "{\"event\":\"running_script\",\"script\":\"%s\"}",
                        scripts[job->script_index].name);

    request_event(job->call->request, json, (size_t)size);
}

static void job_start_script(struct worker_job *job, const char *text)
{
    static const struct worker_script_events events = { .ended = on_script_ended };
    const struct worker_script_spec spec = {
        .text = text,
        .env = &job->env,
        .timeout_ms = job_left_ms(job),
        .log = job->worker ? &job->worker->log : NULL,
        .captures = job->captures,
    };
    struct sandbox_error err = { 0 };

    job_tell_script(job);
    if (worker_script_start(worker_vm_sandbox(job->vm), &spec, &events, job, &job->script,
                            &err) == 0)
        return;
    job_fail(job, S300, scripts[job->script_index].name, err.message);
    sandbox_error_done(&err);
    worker_vm_stop(job->vm, "its preparation failed", false);
}

static void job_next_script(struct worker_job *job)
{
    while (job->script_index < ARRAY_SIZE(scripts) && !job_script(job, job->script_index))
        job->script_index++;
    if (job->script_index < ARRAY_SIZE(scripts))
        job_start_script(job, job_script(job, job->script_index));
    else
        worker_vm_stop(job->vm, "it is prepared", true);
}

static void on_vm_up(void *ctx)
{
    struct worker_job *job = ctx;

    if (job->failed)
        worker_vm_stop(job->vm, "it is not wanted any more", false);
    else
        job_next_script(job);
}

static void on_vm_gone(void *ctx, struct sandbox_error *err)
{
    struct worker_job *job = ctx;
    bool prepared = !job->failed && job->script_index == ARRAY_SIZE(scripts);

    worker_script_free(take_ptr(job->script));
    worker_vm_free(take_ptr(job->vm));
    if (prepared) {
        job_publish(job);
        return;
    }
    if (!job->failed) {
        job->failed = true;
        sandbox_error_move(&job->failure, err);
    }
    job_over(job);
}

/* It stays behind, with the lock: nobody else gets at the state until it is gone. */
static void on_vm_stuck(void *ctx, struct sandbox_error *err)
{
    struct worker_job *job = ctx;

    worker_script_free(take_ptr(job->script));
    worker_vm_free(take_ptr(job->vm));
    if (!job->failed) {
        job->failed = true;
        sandbox_error_move(&job->failure, err);
    }
    job_over(job);
}

static int job_fill_env(struct worker_job *job)
{
    const struct manifest *manifest = &job->source.manifest;
    const struct worker_prepare_request *prepare = request_body(job->call->request);
    const struct worker_start_request *start = request_body(job->call->request);
    int result = 0;

    for (size_t i = 0; result == 0 && i < manifest->env.count; i++)
        result = text_list_append(&job->env, manifest->env.items[i]);
    return result == 0 ? env_append(job->worker ? &start->env : &prepare->env, &job->env)
                       : result;
}

static int job_fill_lasting(struct worker_job *job)
{
    if (asprintf(&job->data_path, "%s/next/data", job->folder.path) < 0)
        job->data_path = NULL;
    if (asprintf(&job->source_path, "%s/source", job->folder.path) < 0)
        job->source_path = NULL;
    job->lasting = (struct machine_lasting){
        .lock_fd = job->folder.lock_fd,
        .data = job->data_path,
        .workspace = job->source_path,
    };
    return job->data_path && job->source_path ? 0 : -ENOMEM;
}

/* next/ is there: its scripts, if there are any, run in a VM on it. */
static void job_copied(struct worker_job *job)
{
    static const struct worker_vm_events events = {
        .up = on_vm_up,
        .gone = on_vm_gone,
        .stuck = on_vm_stuck,
    };
    const struct worker_vm_spec spec = {
        .request = job->call->request,
        .registry = job_workers(job)->registry,
        .image = job->mark.image,
        .name = job->source.manifest.name,
        .cpus = job->cpus,
        .memory_mb = job->memory_mb,
        .network = true,
        .lasting = &job->lasting,
    };

    if (!job_script(job, 0) && !job_script(job, 1)) {
        job_publish(job);
        return;
    }
    job_set_state(job, JOB_PREPARING);
    if (job_fill_env(job) < 0 || job_fill_lasting(job) < 0)
        job_fail(job, S300, "preparing", "no memory");
    else if (worker_vm_start(&spec, &events, job, &job->vm, &job->failure) == 0)
        return;
    job->failed = true;
    job_over(job);
}

/* Lock, source, and what follows. */

static void on_begun(void *ctx, struct sandbox_error *err)
{
    struct worker_job *job = ctx;

    job_finish(job, err);
}

/* The state is as it is to be. */
static void job_published(struct worker_job *job)
{
    if (!job->worker) {
        job_over(job);
        return;
    }
    job_set_state(job, JOB_BOOTING);
    worker_boot(job->worker, job->call->request, job->mark.image, job->cpus, job->memory_mb,
                &job->folder, on_begun, job);
}

static void job_packed(struct worker_job *job)
{
    if (job->prepare)
        job_run_number(job, JOB_COPYING, job_settings(job)->max_disk_mb);
    else
        job_published(job);
}

static void job_locked(struct worker_job *job)
{
    struct state_holder holder = { 0 };

    if (job->worker) {
        (void)snprintf(holder.vm_id, sizeof(holder.vm_id), "%s", job->worker->id);
        (void)snprintf(holder.instance, sizeof(holder.instance), "%s", job->worker->instance);
    }
    if (state_folder_set_holder(&job->folder, &holder) < 0)
        log_event(LOG_WARN, "worker_holder_not_written",
                  log_text("state_key", job->key->text)); /* only for messages */
    job_run_number(job, JOB_PACKING, job_settings(job)->max_source_mb);
}

/* Of another process, or of a VM that outlives its adapter by a moment. */
static void job_lock_held(struct worker_job *job)
{
    struct state_holder holder;

    state_folder_holder(&job->folder, &holder);
    job->failed = true;
    (void)sandbox_error_set(&job->failure, S502,
                            "state_key %s is held by another process than this adapter",
                            job->key->text);
    if (holder.vm_id[0]) {
        sandbox_error_add_fix_text(&job->failure, "vm_id", holder.vm_id);
        sandbox_error_add_fix_text(&job->failure, "instance", holder.instance);
    }
}

static void job_lock(struct worker_job *job)
{
    int result = state_folder_lock(&job->folder);

    if (result == 0) {
        job_locked(job);
        return;
    }
    if (result == -EWOULDBLOCK && loop_now_ms(job_workers(job)->loop) < job->lock_until_ms) {
        loop_timer_arm(job->timer, WORKER_LOCK_RETRY_MS);
        return;
    }
    if (result == -EWOULDBLOCK)
        job_lock_held(job);
    else
        job_fail(job, S300, "lock", strerror(-result));
    job_over(job);
}

static void on_begin(void *ctx)
{
    job_lock(ctx);
}

static void on_over(void *ctx)
{
    job_over(ctx);
}

void worker_job_abort(struct worker_job *job, const char *why)
{
    job_fail(job, S300, "aborted", why);
    switch (job->state) {
    case JOB_PREPARING:
        if (job->vm)
            worker_vm_stop(job->vm, why, false);
        break;
    case JOB_BOOTING: /* the worker's own end is its end */
        break;
    default:
        worker_task_free(take_ptr(job->task));
        loop_timer_disarm(job->timer);
        loop_notice_cancel(job_workers(job)->loop, &job->begin);
        loop_notify(job_workers(job)->loop, &job->over);
        break;
    }
}

static int job_new(const struct worker_job_spec *spec, struct worker_job **ret_job)
{
    const struct adapter *adapter = spec->key->workers->adapter;
    struct worker_job *job = calloc(1, sizeof(*job));
    _cleanup_free_ char *root = NULL;
    int result;

    if (!job)
        return -ENOMEM;
    job->key = spec->key;
    job->call = spec->own_call;
    job->source = *spec->own_source;
    *spec->own_source = (struct source_folder){ .fd = -1 };
    job->mark = *spec->mark;
    job->prepare = spec->prepare;
    job->cpus = spec->cpus;
    job->memory_mb = spec->memory_mb;
    job->folder.lock_fd = -1;
    capture_init(&job->captures[0], 0);
    capture_init(&job->captures[1], 0);
    loop_notice_init(&job->begin, on_begin, job);
    loop_notice_init(&job->over, on_over, job);
    *ret_job = job;
    result = loop_timer_new(job_workers(job)->loop, on_begin, job, &job->timer);
    if (result == 0 &&
        asprintf(&root, "%s/%s", job_settings(job)->state_dir, adapter_name(adapter)) < 0) {
        root = NULL;
        result = -ENOMEM;
    }
    if (result == 0)
        result = state_folder_open(root, job->key->text, true, &job->folder);
    return result;
}

/* A start has its worker from now on, so that it is listed and can be stopped. */
static int job_add_worker(struct worker_job *job)
{
    const struct worker_spec spec = {
        .request = job->call->request,
        .source = &job->source,
        .folder = job->folder.path,
    };

    job->worker = worker_new(job->key, &spec);
    return job->worker ? 0 : -ENOMEM;
}

void worker_job_begin(const struct worker_job_spec *spec)
{
    struct worker_job *job = NULL;
    int result = job_new(spec, &job);

    if (job && result == 0 && request_operation(job->call->request)->id == OP_worker_start)
        result = job_add_worker(job);
    if (!job) {
        struct sandbox_error err = { 0 };

        (void)sandbox_error_set(&err, S300, "state_key %s: no memory", spec->key->text);
        sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
        request_fail(spec->own_call->request, &err);
        free(spec->own_call);
        spec->key->workers->places--;
        worker_key_changed(spec->key);
        return;
    }
    job->key->job = job;
    job->lock_until_ms = loop_now_ms(job_workers(job)->loop) + WORKER_LOCK_MS;
    if (result < 0)
        job_fail(job, S300, "state", strerror(-result));
    loop_notify(job_workers(job)->loop, result < 0 ? &job->over : &job->begin);
}
