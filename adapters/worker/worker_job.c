/* worker_job.c - see worker_job.h. */
#include "worker_job.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "log.h"
#include "pack/source_pack.h"
#include "worker.h"
#include "worker_preparation.h"

/* Each state is left only forwards; where nothing is to be prepared, those between packing and
 * booting are left out. */
enum job_state {
    JOB_LOCKING,    /* the lock is tried until it is ours */
    JOB_PACKING,    /* worker-files source */
    JOB_COPYING,    /* worker-files next */
    JOB_PREPARING,  /* a VM on next/ runs setup and install */
    JOB_PUBLISHING, /* worker-files publish: next/ becomes state/ */
    JOB_DISCARDING, /* worker-files discard: the preparation failed, next/ goes */
    JOB_BOOTING,    /* of a start: the worker has the lock and boots */
    JOB_STATE_MAX
};

struct worker_job {
    struct worker_key *key;
    struct worker_call *call;
    struct worker *worker; /* of a start; NULL: a prepare */
    enum job_state state;
    struct source_folder source;
    struct state_mark mark;
    bool prepare; /* the state has not the mark yet; known once it is locked */
    uint32_t cpus;
    uint32_t memory_mb;
    struct state_folder folder;
    struct loop_timer *timer; /* of the lock */
    uint64_t lock_until_ms;
    struct loop_notice begin; /* the first try of the lock */
    struct loop_notice over;  /* it was aborted */

    struct worker_task *task;
    struct worker_preparation *preparation;

    bool failed;
    struct sandbox_error failure; /* the first */
};

static void job_set_state(struct worker_job *job, enum job_state state)
{
    static const char *const names[] = {
        "locking", "packing", "copying", "preparing", "publishing", "discarding", "booting",
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
    worker_preparation_free(job->preparation);
    loop_timer_free(job->timer);
    source_folder_done(&job->source);
    state_folder_done(&job->folder);
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
        .cached = !job->prepare,
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
        if (job->folder.lock_fd >= 0)                          /* else it is another's */
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

/* FOLDER of the state says why not. */
static void job_fail_path(struct worker_job *job, const char *step, int result)
{
    char why[512];

    (void)snprintf(why, sizeof(why), "%s: %s", job->folder.path ? job->folder.path : "",
                   strerror(-result)); /* cut is fine in a message */
    job_fail(job, S300, step, why);
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
    [JOB_DISCARDING] = { "discard", job_over },
    [JOB_BOOTING] = { NULL, NULL },
};
static_assert(ARRAY_SIZE(steps) == JOB_STATE_MAX, "a row for each state");

static void job_reject_source(struct worker_job *job, int status)
{
    job->failed = true;
    if (status == WORKER_TASK_TOO_DEEP)
        (void)sandbox_error_set(&job->failure, S501, "%s: its folders are more than %u deep",
                                job->source.path, SOURCE_PACK_DEPTH_MAX);
    else
        (void)sandbox_error_set(&job->failure, S501, "%s: packed it exceeds max_source_mb %u",
                                job->source.path, job_settings(job)->max_source_mb);
}

static bool is_rejected(const struct worker_job *job, int status)
{
    return job->state == JOB_PACKING &&
           (status == WORKER_TASK_TOO_LARGE || status == WORKER_TASK_TOO_DEEP);
}

static void on_task(void *ctx, int status, const char *errors)
{
    struct worker_job *job = ctx;
    const char *word = steps[job->state].word;

    job->task = NULL;
    if (is_rejected(job, status))
        job_reject_source(job, status);
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

/* Nobody has a use for what a failed preparation wrote, and it may fill the disk. */
static void job_discard(struct worker_job *job)
{
    if (job_workers(job)->ending)
        job_over(job);
    else
        job_run_step(job, JOB_DISCARDING, "");
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

static void on_prepared(void *ctx, struct sandbox_error *err, bool off)
{
    struct worker_job *job = ctx;

    if (err && !job->failed) {
        job->failed = true;
        sandbox_error_move(&job->failure, err);
    }
    worker_preparation_free(take_ptr(job->preparation));
    if (!job->failed)
        job_publish(job);
    else if (off)
        job_discard(job);
    else
        job_over(job);
}

/* next/ is there: its scripts, if there are any, run in a VM on it. */
static void job_copied(struct worker_job *job)
{
    const struct worker_prepare_request *prepare = request_body(job->call->request);
    const struct worker_start_request *start = request_body(job->call->request);
    const struct worker_preparation_spec spec = {
        .request = job->call->request,
        .registry = job_workers(job)->registry,
        .state_key = job->key->text,
        .folder = &job->folder,
        .manifest = &job->source.manifest,
        .env = job->worker ? &start->env : &prepare->env,
        .image = job->mark.image,
        .cpus = job->cpus,
        .memory_mb = job->memory_mb,
        .timeout_ms = job->worker ? WORKER_PREPARE_MS : prepare->timeout_ms,
        .log = job->worker ? &job->worker->log : NULL,
    };

    if (!worker_preparation_needed(&job->source.manifest)) {
        job_publish(job);
        return;
    }
    job_set_state(job, JOB_PREPARING);
    if (worker_preparation_start(&spec, on_prepared, job, &job->preparation, &job->failure) ==
        0)
        return;
    job->failed = true;
    job_discard(job);
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
    struct state_mark has;

    state_folder_mark(&job->folder, &has); /* another process may have prepared meanwhile */
    job->prepare = strcmp(has.digest, job->mark.digest) != 0;
    if (!job->prepare && !job->worker) {
        job_over(job);
        return;
    }
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
        job_fail_path(job, "lock", result);
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
        worker_preparation_stop(job->preparation, why);
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
    job->cpus = spec->cpus;
    job->memory_mb = spec->memory_mb;
    job->folder.lock_fd = -1;
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
        result = state_folder_open(root, job->key->text, &job->folder);
    if (result == 0)
        result = state_folder_make(&job->folder);
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
        job_fail_path(job, "state", result);
    loop_notify(job_workers(job)->loop, result < 0 ? &job->over : &job->begin);
}
