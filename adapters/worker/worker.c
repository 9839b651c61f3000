/* worker.c - see worker.h. */
#include "worker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "fault.h"
#include "log.h"
#include "worker_job.h"

static const char *const state_names[] = {
    [WORKER_STARTING] = "starting", [WORKER_RUNNING] = "running", [WORKER_WAITING] = "waiting",
    [WORKER_STOPPING] = "stopping", [WORKER_ENDING] = "ending",   [WORKER_STUCK] = "stuck",
    [WORKER_EXITED] = "exited",
};
static_assert(ARRAY_SIZE(state_names) == WORKER_STATE_MAX, "a name for each state");

#define TO(state) (1u << WORKER_##state)
static const unsigned state_moves[] = {
    [WORKER_STARTING] = TO(RUNNING) | TO(ENDING) | TO(STUCK) | TO(EXITED),
    [WORKER_RUNNING] = TO(WAITING) | TO(STOPPING) | TO(ENDING) | TO(EXITED),
    [WORKER_WAITING] = TO(RUNNING) | TO(ENDING) | TO(EXITED),
    [WORKER_STOPPING] = TO(ENDING) | TO(EXITED),
    [WORKER_ENDING] = TO(STUCK) | TO(EXITED),
    [WORKER_STUCK] = TO(ENDING) | TO(EXITED),
    [WORKER_EXITED] = 0,
};
#undef TO
static_assert(ARRAY_SIZE(state_moves) == WORKER_STATE_MAX, "moves of each state");

static void worker_set_state(struct worker *worker, enum worker_state state)
{
    assert(state_moves[worker->state] & 1u << state);
    log_event(LOG_INFO, "worker_state", log_text("worker", worker->id),
              log_text("from", state_names[worker->state]), log_text("to", state_names[state]));
    worker->state = state;
}

const char *worker_state_text(const struct worker *worker)
{
    static const char *const texts[] = {
        [WORKER_STARTING] = "starting", [WORKER_RUNNING] = "running",
        [WORKER_WAITING] = "starting",  [WORKER_STOPPING] = "running",
        [WORKER_ENDING] = "running",    [WORKER_STUCK] = "running",
        [WORKER_EXITED] = "exited",
    };
    static_assert(ARRAY_SIZE(texts) == WORKER_STATE_MAX, "a text for each state");

    return texts[worker->state];
}

static bool ran_steadily(const struct worker *worker)
{
    return loop_now_ms(worker->workers->loop) - worker->run_ms >= WORKER_STEADY_MS;
}

uint32_t worker_restarts(const struct worker *worker)
{
    return worker->state == WORKER_RUNNING && ran_steadily(worker) ? 0 : worker->restarts;
}

/* Life. */

void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    assert(list_empty(&worker->stops));
    list_remove(&worker->node);
    worker_script_free(worker->script);
    worker_vm_free(worker->vm);
    loop_timer_free(worker->timer);
    worker_log_done(&worker->log);
    state_folder_done(&worker->folder);
    text_list_done(&worker->env);
    free(worker->data_path);
    free(worker->source_path);
    free(worker->script_text);
    free(worker->name);
    free(worker);
}

/* The stops that waited are answered; ERR: it cannot be ended. */
static void worker_tell_stops(struct worker *worker, const struct sandbox_error *err)
{
    struct worker_stop_reply reply = {
        .vm_id = worker->id,
        .instance = worker->instance,
        .stopped = true,
    };
    struct list *node;

    while ((node = list_pop(&worker->stops))) {
        struct worker_stop *stop = LIST_ENTRY(node, struct worker_stop, node);
        struct sandbox_error copy = { 0 };

        if (err) {
            (void)sandbox_error_set(&copy, S300, "worker %s: %s", worker->id, err->message);
            sandbox_error_set_outcome(&copy, OUTCOME_MAY_HAVE_RUN);
            request_fail(stop->request, &copy);
        } else {
            request_reply(stop->request, &reply);
        }
        free(stop);
    }
}

/* Tells who began it, if that is still to be done. False: it was told before. */
static bool worker_tell_begun(struct worker *worker, struct sandbox_error *err)
{
    void (*begun)(void *ctx, struct sandbox_error *err) = worker->begun;

    if (!begun)
        return false;
    worker->begun = NULL;
    begun(worker->begun_ctx, err);
    return true;
}

/* It holds its state no more. */
static void worker_release(struct worker *worker)
{
    struct worker_key *key = worker->key;

    (void)state_folder_set_holder(&worker->folder, NULL); /* only for messages */
    state_folder_done(&worker->folder);
    worker->key = NULL;
    key->live = NULL;
    worker->workers->places--;
    worker_key_changed(key);
}

/* The VM is off. */
static void worker_off(struct worker *worker, struct sandbox_error *err)
{
    bool failed;

    worker_script_free(take_ptr(worker->script));
    worker_vm_free(take_ptr(worker->vm));
    loop_timer_disarm(worker->timer);
    worker_set_state(worker, WORKER_EXITED);
    failed = worker_tell_begun(worker, err);
    worker_release(worker);
    worker_tell_stops(worker, NULL);
    if (failed || worker->forget)
        worker_free(worker);
    else
        workers_remember(worker);
}

static void on_vm_gone(void *ctx, struct sandbox_error *err)
{
    worker_off(ctx, err);
}

static void on_vm_stuck(void *ctx, struct sandbox_error *err)
{
    struct worker *worker = ctx;

    worker_set_state(worker, WORKER_STUCK);
    worker_tell_stops(worker, err);
    (void)worker_tell_begun(worker, err);
}

static void worker_end_vm(struct worker *worker, const char *why, bool sync)
{
    loop_timer_disarm(worker->timer);
    worker_set_state(worker, WORKER_ENDING);
    worker_vm_stop(worker->vm, why, sync);
}

/* The start script. */

static void worker_run(struct worker *worker);

static void on_script_started(void *ctx)
{
    struct worker *worker = ctx;

    worker_set_state(worker, WORKER_RUNNING);
    worker->run_ms = loop_now_ms(worker->workers->loop);
    (void)worker_tell_begun(worker, NULL);
}

/* Exit code 0 is the end of it, anything else too when it comes too often. */
static void worker_script_exited(struct worker *worker)
{
    if (worker->exit_code == 0) {
        worker_end_vm(worker, "its start script has ended", true);
        return;
    }
    if (ran_steadily(worker))
        worker->restarts = 0;
    if (worker->restarts == WORKER_RESTARTS_MAX) {
        worker_end_vm(worker, "its start script failed too often", true);
        return;
    }
    worker_set_state(worker, WORKER_WAITING);
    loop_timer_arm(worker->timer, (uint64_t)WORKER_RESTART_MS << worker->restarts);
}

static void on_script_ended(void *ctx, enum worker_script_end end, int32_t code,
                            const char *why)
{
    struct worker *worker = ctx;

    worker->script = NULL;
    if (end == SCRIPT_EXITED) {
        worker->has_exit_code = true;
        worker->exit_code = code;
        if (worker->state == WORKER_STARTING || worker->state == WORKER_WAITING)
            on_script_started(worker); /* it could not even be found: that is an exit, too */
    }
    if (worker->state >= WORKER_ENDING)
        return;
    if (end == SCRIPT_LOST)
        worker_end_vm(worker, why, false);
    else if (worker->state == WORKER_STOPPING)
        worker_end_vm(worker, "it was stopped", true);
    else
        worker_script_exited(worker);
}

static void worker_run(struct worker *worker)
{
    static const struct worker_script_events events = {
        .started = on_script_started,
        .ended = on_script_ended,
    };
    const struct worker_script_spec spec = {
        .text = worker->script_text,
        .env = &worker->env,
        .log = &worker->log,
    };
    struct sandbox_error err = { 0 };

    if (worker_script_start(worker_vm_sandbox(worker->vm), &spec, &events, worker,
                            &worker->script, &err) == 0)
        return;
    worker_end_vm(worker, err.message, false);
    sandbox_error_done(&err);
}

static void on_vm_up(void *ctx)
{
    worker_run(ctx);
}

static void on_timer(void *ctx)
{
    struct worker *worker = ctx;

    if (worker->state == WORKER_WAITING) {
        worker->restarts++;
        worker_run(worker);
    } else if (worker->state == WORKER_STOPPING && worker->script) {
        worker_script_kill(worker->script);
    }
}

/* Stopping. */

void worker_await_end(struct worker *worker, struct worker_stop *own_stop)
{
    list_append(&worker->stops, &own_stop->node);
}

void worker_stop(struct worker *worker, uint64_t timeout_ms)
{
    static const char why[] = "it was stopped";

    worker->forget = true;
    switch (worker->state) {
    case WORKER_STARTING:
        if (!worker->vm)
            worker_job_abort(worker->key->job, why);
        else if (worker->script)
            worker_end_vm(worker, why, false);
        else
            worker_vm_stop(worker->vm, why, false);
        break;
    case WORKER_RUNNING:
        worker_set_state(worker, WORKER_STOPPING);
        if (timeout_ms > 0)
            worker_script_terminate(worker->script);
        loop_timer_arm(worker->timer, timeout_ms);
        break;
    case WORKER_WAITING:
        worker_script_free(take_ptr(worker->script)); /* it may be about to begin */
        worker_end_vm(worker, why, true);
        break;
    case WORKER_STUCK:
        worker_end_vm(worker, why, false);
        break;
    default: /* it ends already, or has ended */
        break;
    }
}

/* The beginning. */

void worker_boot(struct worker *worker, struct request *request, const char *image,
                 uint32_t cpus, uint32_t memory_mb, struct state_folder *own_folder,
                 void (*begun)(void *ctx, struct sandbox_error *err), void *ctx)
{
    static const struct worker_vm_events events = {
        .up = on_vm_up,
        .gone = on_vm_gone,
        .stuck = on_vm_stuck,
    };
    const struct worker_start_request *body = request_body(request);
    const struct worker_vm_spec spec = {
        .request = request,
        .registry = worker->workers->registry,
        .image = image,
        .name = worker->name,
        .cpus = cpus,
        .memory_mb = memory_mb,
        .network = body->network,
        .lasting = &worker->lasting,
    };
    struct sandbox_error err = { 0 };

    worker->folder = *own_folder;
    *own_folder = (struct state_folder){ .lock_fd = -1 };
    worker->begun = begun;
    worker->begun_ctx = ctx;
    if (asprintf(&worker->data_path, "%s/state/data", worker->folder.path) < 0)
        worker->data_path = NULL;
    if (asprintf(&worker->source_path, "%s/source", worker->folder.path) < 0)
        worker->source_path = NULL;
    worker->lasting = (struct machine_lasting){
        .lock_fd = worker->folder.lock_fd,
        .data = worker->data_path,
        .workspace = worker->source_path,
    };
    if (!worker->data_path || !worker->source_path)
        (void)sandbox_error_set(&err, S300, "worker %s: no memory", worker->id);
    else if (worker_vm_start(&spec, &events, worker, &worker->vm, &err) == 0)
        return;
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    worker_off(worker, &err);
    sandbox_error_done(&err);
}

static int worker_fill(struct worker *worker, const struct worker_spec *spec)
{
    const struct worker_start_request *body = request_body(spec->request);
    const struct manifest *manifest = &spec->source->manifest;
    int result = fault_new_id(worker->workers->adapter, worker->id);

    (void)snprintf(worker->instance, sizeof(worker->instance), "%s", body->instance);
    token_set(&worker->token, body->auth_token);
    worker->name = strdup(manifest->name);
    worker->script_text = strdup(manifest->start);
    if (!worker->name || !worker->script_text)
        return -1;
    for (size_t i = 0; result == 0 && i < manifest->env.count; i++)
        result = text_list_append(&worker->env, manifest->env.items[i]);
    if (result == 0)
        result = env_append(&body->env, &worker->env);
    if (result == 0)
        result = loop_timer_new(worker->workers->loop, on_timer, worker, &worker->timer);
    return result;
}

struct worker *worker_new(struct worker_key *key, const struct worker_spec *spec)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return NULL;
    worker->workers = key->workers;
    worker->started_at = fault_wall_seconds(worker->workers->adapter);
    worker->folder.lock_fd = worker->log.fd = -1;
    list_init(&worker->node);
    list_init(&worker->stops);
    memcpy(worker->state_key, key->text, sizeof(worker->state_key));
    if (worker_fill(worker, spec) < 0) {
        worker_free(worker);
        return NULL;
    }
    if (worker_log_init(&worker->log, spec->folder) < 0)
        log_event(LOG_WARN, "worker_without_log", log_text("worker", worker->id));
    worker->key = key;
    key->live = worker;
    list_append(&worker->workers->all, &worker->node);
    return worker;
}
