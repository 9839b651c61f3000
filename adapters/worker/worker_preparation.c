/* worker_preparation.c - see worker_preparation.h. */
#include "worker_preparation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "codec.h"
#include "worker_script.h"
#include "worker_vm.h"

/* In order. */
static const struct {
    const char *name;
    size_t offset; /* in struct manifest */
} scripts[] = {
    { "setup", offsetof(struct manifest, setup) },
    { "install", offsetof(struct manifest, install) },
};

struct worker_preparation {
    struct worker_preparation_spec spec;
    worker_preparation_done_fn done;
    void *ctx;
    struct worker_vm *vm;
    struct worker_script *script; /* NULL: none runs */
    size_t script_index;          /* of the one that runs, or is next */
    uint64_t until_ms;            /* deadline; 0: no script has begun */
    struct text_list env;         /* manifest, then request */
    struct capture captures[2];   /* of both scripts */
    char *data_path, *source_path;
    struct machine_lasting lasting;

    bool failed;
    struct sandbox_error failure; /* the first */
};

/* NULL: there is none, or nothing in it. */
static const char *script_text(const struct manifest *manifest, size_t index)
{
    const char *text = *(char *const *)((const char *)manifest + scripts[index].offset);

    return text && *text ? text : NULL;
}

bool worker_preparation_needed(const struct manifest *manifest)
{
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        if (script_text(manifest, i))
            return true;
    }
    return false;
}

void worker_preparation_free(struct worker_preparation *preparation)
{
    if (!preparation)
        return;
    worker_script_free(preparation->script);
    worker_vm_free(preparation->vm);
    text_list_done(&preparation->env);
    capture_done(&preparation->captures[0]);
    capture_done(&preparation->captures[1]);
    free(preparation->data_path);
    free(preparation->source_path);
    sandbox_error_done(&preparation->failure);
    free(preparation);
}

/* Failing. */

static const char *script_name(const struct worker_preparation *preparation)
{
    return scripts[preparation->script_index].name;
}

static void fail_vm(struct worker_preparation *preparation, const char *why,
                    enum sandbox_outcome outcome)
{
    if (preparation->failed)
        return;
    preparation->failed = true;
    (void)sandbox_error_set(&preparation->failure, S300, "state_key %s, %s: %s",
                            preparation->spec.state_key, script_name(preparation), why);
    sandbox_error_set_outcome(&preparation->failure, outcome);
}

/* S506 with the tails of both streams. */
static void fail_script(struct worker_preparation *preparation, const char *why)
{
    if (preparation->failed)
        return;
    preparation->failed = true;
    (void)sandbox_error_set(&preparation->failure, S506, "state_key %s, script %s %s",
                            preparation->spec.state_key, script_name(preparation), why);
    sandbox_error_set_partial(&preparation->failure, capture_partial(preparation->captures));
}

void worker_preparation_stop(struct worker_preparation *preparation, const char *why)
{
    worker_vm_stop(preparation->vm, why, false);
}

/* The scripts. */

static void run_next(struct worker_preparation *preparation);

static void on_script_ended(void *ctx, enum worker_script_end end, int32_t code,
                            const char *lost)
{
    struct worker_preparation *preparation = ctx;
    char why[96];

    preparation->script = NULL;
    if (end == SCRIPT_LOST) {
        fail_vm(preparation, lost, OUTCOME_MAY_HAVE_RUN);
    } else if (end == SCRIPT_TIMED_OUT) {
        (void)snprintf(why, sizeof(why), "passed the timeout of %" PRIu64 " ms",
                       preparation->spec.timeout_ms);
        fail_script(preparation, why);
    } else if (code != 0) {
        (void)snprintf(why, sizeof(why), "ended with exit code %d", code);
        fail_script(preparation, why);
    }
    if (preparation->failed) {
        worker_vm_stop(preparation->vm, "its preparation failed", false);
        return;
    }
    preparation->script_index++;
    run_next(preparation);
}

/* What is left of the deadline, at least 1 ms. */
static uint64_t left_ms(struct worker_preparation *preparation)
{
    uint64_t now_ms = loop_now_ms(adapter_loop(request_adapter(preparation->spec.request)));

    if (preparation->until_ms == 0)
        preparation->until_ms = now_ms + preparation->spec.timeout_ms;
    return preparation->until_ms > now_ms ? preparation->until_ms - now_ms : 1;
}

static void tell_script(const struct worker_preparation *preparation)
{
    char json[64];
    int size = snprintf(json, sizeof(json), "{\"event\":\"running_script\",\"script\":\"%s\"}",
                        script_name(preparation));

    request_event(preparation->spec.request, json, (size_t)size);
}

static void run_script(struct worker_preparation *preparation, const char *text)
{
    static const struct worker_script_events events = { .ended = on_script_ended };
    const struct worker_script_spec spec = {
        .text = text,
        .env = &preparation->env,
        .timeout_ms = left_ms(preparation),
        .log = preparation->spec.log,
        .captures = preparation->captures,
    };
    struct sandbox_error err = { 0 };

    tell_script(preparation);
    if (worker_script_start(worker_vm_sandbox(preparation->vm), &spec, &events, preparation,
                            &preparation->script, &err) == 0)
        return;
    fail_vm(preparation, err.message, OUTCOME_NEVER_RAN);
    sandbox_error_done(&err);
    worker_vm_stop(preparation->vm, "its preparation failed", false);
}

static void run_next(struct worker_preparation *preparation)
{
    const struct manifest *manifest = preparation->spec.manifest;

    while (preparation->script_index < ARRAY_SIZE(scripts) &&
           !script_text(manifest, preparation->script_index))
        preparation->script_index++;
    if (preparation->script_index < ARRAY_SIZE(scripts))
        run_script(preparation, script_text(manifest, preparation->script_index));
    else
        worker_vm_stop(preparation->vm, "it is prepared", true);
}

/* The VM. */

static void on_vm_up(void *ctx)
{
    run_next(ctx);
}

/* ERR of the VM counts only where no script has failed before. */
static void over(struct worker_preparation *preparation, struct sandbox_error *err, bool off)
{
    worker_script_free(take_ptr(preparation->script));
    worker_vm_free(take_ptr(preparation->vm));
    preparation->done(preparation->ctx, preparation->failed ? &preparation->failure : err, off);
}

/* A VM that was lost before it had synced has prepared nothing. */
static void on_vm_gone(void *ctx, struct sandbox_error *err)
{
    struct worker_preparation *preparation = ctx;

    over(preparation, worker_vm_synced(preparation->vm) ? NULL : err, true);
}

/* It stays behind, with the lock: nobody else gets at the state until it is gone. */
static void on_vm_stuck(void *ctx, struct sandbox_error *err)
{
    over(ctx, err, false);
}

/* The beginning. */

static int fill_env(struct worker_preparation *preparation)
{
    const struct text_list *manifest = &preparation->spec.manifest->env;
    int result = 0;

    for (size_t i = 0; result == 0 && i < manifest->count; i++)
        result = text_list_append(&preparation->env, manifest->items[i]);
    return result == 0 ? env_append(preparation->spec.env, &preparation->env) : result;
}

static int fill_lasting(struct worker_preparation *preparation)
{
    const struct state_folder *folder = preparation->spec.folder;

    if (asprintf(&preparation->data_path, "%s/next/data", folder->path) < 0)
        preparation->data_path = NULL;
    if (asprintf(&preparation->source_path, "%s/source", folder->path) < 0)
        preparation->source_path = NULL;
    preparation->lasting = (struct machine_lasting){
        .lock_fd = folder->lock_fd,
        .data = preparation->data_path,
        .workspace = preparation->source_path,
    };
    return preparation->data_path && preparation->source_path ? 0 : -ENOMEM;
}

static int start_vm(struct worker_preparation *preparation, struct sandbox_error *err)
{
    static const struct worker_vm_events events = {
        .up = on_vm_up,
        .gone = on_vm_gone,
        .stuck = on_vm_stuck,
    };
    const struct worker_vm_spec spec = {
        .request = preparation->spec.request,
        .registry = preparation->spec.registry,
        .image = preparation->spec.image,
        .name = preparation->spec.manifest->name,
        .cpus = preparation->spec.cpus,
        .memory_mb = preparation->spec.memory_mb,
        .network = true,
        .lasting = &preparation->lasting,
    };

    return worker_vm_start(&spec, &events, preparation, &preparation->vm, err);
}

int worker_preparation_start(const struct worker_preparation_spec *spec,
                             worker_preparation_done_fn done, void *ctx,
                             struct worker_preparation **ret_preparation,
                             struct sandbox_error *err)
{
    struct worker_preparation *preparation = calloc(1, sizeof(*preparation));
    int result = -1;

    if (!preparation)
        return sandbox_error_set(err, S300, "state_key %s: no memory", spec->state_key);
    preparation->spec = *spec;
    preparation->done = done;
    preparation->ctx = ctx;
    capture_init(&preparation->captures[0], 0);
    capture_init(&preparation->captures[1], 0);
    if (fill_env(preparation) < 0 || fill_lasting(preparation) < 0)
        (void)sandbox_error_set(err, S300, "state_key %s: no memory", spec->state_key);
    else
        result = start_vm(preparation, err);
    if (result < 0) {
        sandbox_error_set_outcome(err, OUTCOME_NEVER_RAN);
        worker_preparation_free(preparation);
        return -1;
    }
    *ret_preparation = preparation;
    return 0;
}
