/* worker_vm.c - see worker_vm.h. */
#include "worker_vm.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "boot.h"
#include "catalog.h"
#include "image_cache.h"
#include "log.h"
#include "progress.h"
#include "stop.h"

#define ENV_COUNT 3

struct worker_vm {
    enum worker_vm_state state;
    const struct worker_vm_events *events;
    void *ctx;
    struct request *request; /* NULL once it is up or gone */
    struct sandbox *sandbox; /* one reference */
    const struct machine_lasting *lasting;
    struct image_wait *image_wait;
    const char *image_source; /* for progress; borrowed from the settings */
    struct env_entry entries[ENV_COUNT];
    struct env env; /* its entries are those */
    struct sandbox_watch watch;
    struct stop_wait end;
    struct agent_call *sync;      /* NULL: none */
    struct loop_timer *timer;     /* of the sync */
    bool synced;                  /* the guest said so */
    struct loop_notice discarded; /* it was stopped before there was a machine */
    char why[SANDBOX_WHY_MAX];
};

static void vm_set_state(struct worker_vm *vm, enum worker_vm_state state)
{
    static const char *const names[] = {
        [WORKER_VM_IMAGE] = "image",
        [WORKER_VM_BOOTING] = "booting",
        [WORKER_VM_UP] = "up",
        [WORKER_VM_SYNCING] = "syncing",
        [WORKER_VM_STOPPING] = "stopping",
        [WORKER_VM_STUCK] = "stuck",
        [WORKER_VM_GONE] = "gone",
    };
    static_assert(ARRAY_SIZE(names) == WORKER_VM_STATE_MAX, "a name for each state");
#define TO(state) (1u << WORKER_VM_##state)
    static const unsigned moves[] = {
        [WORKER_VM_IMAGE] = TO(BOOTING) | TO(GONE),
        [WORKER_VM_BOOTING] = TO(UP) | TO(STOPPING) | TO(GONE),
        [WORKER_VM_UP] = TO(SYNCING) | TO(STOPPING) | TO(GONE),
        [WORKER_VM_SYNCING] = TO(STOPPING) | TO(GONE),
        [WORKER_VM_STOPPING] = TO(STUCK) | TO(GONE),
        [WORKER_VM_STUCK] = TO(STOPPING) | TO(GONE),
        [WORKER_VM_GONE] = 0,
    };
#undef TO
    static_assert(ARRAY_SIZE(moves) == WORKER_VM_STATE_MAX, "moves of each state");

    assert(moves[vm->state] & 1u << state);
    log_event(LOG_DEBUG, "worker_vm_state", log_text("sandbox", sandbox_id(vm->sandbox)),
              log_text("from", names[vm->state]), log_text("to", names[state]));
    vm->state = state;
}

enum worker_vm_state worker_vm_state(const struct worker_vm *vm)
{
    return vm->state;
}

bool worker_vm_synced(const struct worker_vm *vm)
{
    return vm->synced;
}

struct sandbox *worker_vm_sandbox(const struct worker_vm *vm)
{
    return vm->sandbox;
}

void worker_vm_free(struct worker_vm *vm)
{
    if (!vm)
        return;
    image_wait_free(vm->image_wait);
    loop_notice_cancel(sandbox_loop(vm->sandbox), &vm->discarded);
    sandbox_watch_end(&vm->watch);
    stop_wait_cancel(&vm->end);
    if (vm->sync)
        agent_call_abandon(vm->sync);
    loop_timer_free(vm->timer);
    for (size_t i = 0; i < ENV_COUNT; i++)
        free(vm->entries[i].value);
    sandbox_unref(vm->sandbox);
    free(vm);
}

/* The end. */

static void vm_gone(struct worker_vm *vm, struct sandbox_error *err)
{
    sandbox_watch_end(&vm->watch);
    loop_timer_disarm(vm->timer);
    vm_set_state(vm, WORKER_VM_GONE);
    vm->events->gone(vm->ctx, err);
}

/* The sandbox is gone after it was up. */
static void on_gone(void *ctx, const char *why)
{
    struct worker_vm *vm = ctx;
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S300, "the worker's VM %s has ended: %s",
                            sandbox_id(vm->sandbox), why);
    sandbox_error_set_outcome(&err, OUTCOME_MAY_HAVE_RUN);
    vm_gone(vm, &err);
    sandbox_error_done(&err);
}

/* Of the stop alone; its success is told by the watch. */
static void on_stopped(void *ctx, struct sandbox_error *err)
{
    struct worker_vm *vm = ctx;

    if (!err || vm->state != WORKER_VM_STOPPING)
        return;
    vm_set_state(vm, WORKER_VM_STUCK);
    vm->events->stuck(vm->ctx, err);
}

static void on_discarded(void *ctx)
{
    struct worker_vm *vm = ctx;
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S300, "the worker's VM %s was not made: %s",
                            sandbox_id(vm->sandbox), vm->why);
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    sandbox_discard(vm->sandbox, vm->why);
    vm_gone(vm, &err);
    sandbox_error_done(&err);
}

static void vm_power_off(struct worker_vm *vm)
{
    if (sandbox_state(vm->sandbox) == SANDBOX_GONE)
        return; /* the watch is about to tell */
    loop_timer_disarm(vm->timer);
    vm_set_state(vm, WORKER_VM_STOPPING);
    sandbox_stop(vm->sandbox, vm->why, &vm->end);
}

static void vm_not_synced(struct worker_vm *vm, const char *error)
{
    log_event(LOG_WARN, "worker_not_synced", log_text("sandbox", sandbox_id(vm->sandbox)),
              log_text("error", error));
    (void)snprintf(vm->why, sizeof(vm->why), "its disk could not be synced: %.100s", error);
}

static void on_synced(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct worker_vm *vm = ctx;

    vm->sync = NULL;
    vm->synced = !err;
    if (err)
        vm_not_synced(vm, err->message);
    if (vm->state == WORKER_VM_SYNCING)
        vm_power_off(vm);
}

static void on_timer(void *ctx)
{
    struct worker_vm *vm = ctx;

    vm_not_synced(vm, "no answer in time");
    if (vm->sync)
        agent_call_abandon(take_ptr(vm->sync));
    if (vm->state == WORKER_VM_SYNCING)
        vm_power_off(vm);
}

static void vm_sync(struct worker_vm *vm)
{
    static const struct agent_call_events events = { .ended = on_synced };
    const struct guest_empty request = { 0 };
    struct sandbox_error err = { 0 };

    if (sandbox_call(vm->sandbox, GUEST_sync, &request, &events, vm, &vm->sync, &err) < 0) {
        sandbox_error_done(&err); /* a guest that does not answer cannot sync */
        vm_power_off(vm);
        return;
    }
    vm_set_state(vm, WORKER_VM_SYNCING);
    loop_timer_arm(vm->timer, WORKER_VM_SYNC_MS);
}

void worker_vm_stop(struct worker_vm *vm, const char *why, bool sync)
{
    (void)snprintf(vm->why, sizeof(vm->why), "%s", why);
    switch (vm->state) {
    case WORKER_VM_IMAGE:
        image_wait_free(take_ptr(vm->image_wait));
        loop_notify(sandbox_loop(vm->sandbox), &vm->discarded);
        break;
    case WORKER_VM_BOOTING:
        boot_give_up(vm->sandbox, why);
        break;
    case WORKER_VM_UP:
        if (sync && sandbox_state(vm->sandbox) == SANDBOX_READY)
            vm_sync(vm);
        else
            vm_power_off(vm);
        break;
    case WORKER_VM_STUCK:
        vm_power_off(vm);
        break;
    default: /* it is under way */
        break;
    }
}

/* The start. */

static void on_booted(void *ctx, struct sandbox_error *err)
{
    struct worker_vm *vm = ctx;

    vm->request = NULL;
    vm->lasting = NULL;
    if (!err) {
        vm_set_state(vm, WORKER_VM_UP);
        sandbox_watch_begin(vm->sandbox, &vm->watch);
        vm->events->up(vm->ctx);
        return;
    }
    if (sandbox_state(vm->sandbox) == SANDBOX_GONE) {
        vm_gone(vm, err);
        return;
    }
    vm_set_state(vm, WORKER_VM_STOPPING); /* its machine could not be killed */
    vm_set_state(vm, WORKER_VM_STUCK);
    sandbox_watch_begin(vm->sandbox, &vm->watch);
    vm->events->stuck(vm->ctx, err);
}

static void vm_boot(struct worker_vm *vm)
{
    const struct adapter_settings *settings = request_settings(vm->request);
    const struct boot_spec spec = {
        .timeout_ms = settings->boot_timeout_ms,
        .disk_mb = settings->max_disk_mb,
        .env = &vm->env,
        .lasting = vm->lasting,
    };
    struct sandbox_error err = { 0 };

    progress_booting(vm->request);
    vm_set_state(vm, WORKER_VM_BOOTING);
    if (boot_start(vm->sandbox, &spec, on_booted, vm, &err) == 0)
        return;
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    sandbox_discard(vm->sandbox, "it was not made");
    vm_gone(vm, &err);
    sandbox_error_done(&err);
}

static void on_image_progress(void *ctx, const struct image_progress *progress)
{
    struct worker_vm *vm = ctx;

    progress_image(vm->request, vm->image_source, progress);
}

static void on_image(void *ctx, const struct image *own_image, bool installed,
                     struct sandbox_error *err)
{
    struct worker_vm *vm = ctx;

    image_wait_free(take_ptr(vm->image_wait));
    if (err) {
        sandbox_discard(vm->sandbox, "it was not made");
        vm_gone(vm, err);
        return;
    }
    sandbox_set_image(vm->sandbox, own_image);
    vm_boot(vm);
}

/* III_WORKER_NAME and the engine's URL; the latter is rewritten for the guest as all
 * environment of a create is. */
static int vm_fill_env(struct worker_vm *vm, const struct worker_vm_spec *spec)
{
    const char *url = request_settings(spec->request)->worker_engine_url;
    const char *const pairs[ENV_COUNT][2] = {
        { "III_WORKER_NAME", spec->name },
        { "III_URL", url },
        { "III_ENGINE_URL", url },
    };

    for (size_t i = 0; i < ENV_COUNT; i++) {
        vm->entries[i] = (struct env_entry){ (char *)pairs[i][0], strdup(pairs[i][1]) };
        if (!vm->entries[i].value)
            return -1;
    }
    vm->env = (struct env){ .count = ENV_COUNT, .entries = vm->entries };
    return 0;
}

static int vm_begin(struct worker_vm *vm, const struct worker_vm_spec *spec)
{
    static const struct image_wait_events image_events = {
        .progress = on_image_progress,
        .done = on_image,
    };
    struct request *request = spec->request;
    unsigned flags = request_settings(request)->auto_install ? IMAGE_MAY_INSTALL : 0;

    vm->image_source = catalog_source(request_settings(request), spec->image);
    if (vm_fill_env(vm, spec) < 0 ||
        loop_timer_new(sandbox_loop(vm->sandbox), on_timer, vm, &vm->timer) < 0)
        return -1;
    return image_cache_get(adapter_images(request_adapter(request)), request_settings(request),
                           spec->image, flags, &image_events, vm, &vm->image_wait);
}

int worker_vm_start(const struct worker_vm_spec *spec, const struct worker_vm_events *events,
                    void *ctx, struct worker_vm **ret_vm, struct sandbox_error *err)
{
    const struct sandbox_spec sandbox = {
        .image = spec->image,
        .name = spec->name,
        .cpus = spec->cpus,
        .memory_mb = spec->memory_mb,
        .network = spec->network,
    };
    struct worker_vm *vm = calloc(1, sizeof(*vm));

    if (!vm)
        return sandbox_error_set(err, S300, "no memory for a further worker VM");
    vm->events = events;
    vm->ctx = ctx;
    vm->request = spec->request;
    vm->lasting = spec->lasting;
    sandbox_watch_init(&vm->watch, on_gone, vm);
    stop_wait_init(&vm->end, on_stopped, vm);
    loop_notice_init(&vm->discarded, on_discarded, vm);
    if (registry_reserve(spec->registry, UINT32_MAX, &sandbox, &vm->sandbox, err) < 0) {
        free(vm);
        return -1;
    }
    if (vm_begin(vm, spec) < 0) {
        sandbox_discard(vm->sandbox, "it was not made");
        worker_vm_free(vm);
        return sandbox_error_set(err, S300, "no memory for a further worker VM");
    }
    *ret_vm = vm;
    return 0;
}
