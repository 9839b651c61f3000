/* machine.c - see machine.h. */
#include "machine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_state.h"
#include "log.h"
#include "network.h"
#include "scratch.h"
#include "vm.h"

/* Some ten times what each takes on a machine of its own: longer, and others go on meanwhile.
 */
#define CLONE_HOLD_MS 2000u
#define COLD_HOLD_MS 20000u
#define SETTLE_HOLD_MS 1000u
/* How long it stands still for others at most: its link, which would have it answer, waits for
 * several times that before it asks (AGENT_LINK_PING_MS). */
#define PAUSE_MS 1000u

enum machine_state {
    MACHINE_WAITING,  /* something is awaited, or begin is deferred; there is no vm */
    MACHINE_STARTING, /* its vm starts */
    MACHINE_UP,       /* `agent` was told */
    MACHINE_ENDING,   /* killed, or failed; `gone` follows */
    MACHINE_GONE,     /* `gone` was told, or is being told */
    MACHINE_STATE_MAX
};

struct machine {
    struct backend *backend;
    enum machine_state state;
    const struct machine_events *events;
    void *ctx;
    char id[64];
    const struct image *image;
    struct qemu_shape shape;
    /* Of a worker, else -1; ours. */
    int data_fd;
    struct vm_lasting lasting;

    struct loop_notice begin; /* deferred: goes on with the start */
    struct loop_notice end;   /* deferred: it ended without a vm */
    struct template_wait template_wait;
    struct boot_wait boot_wait;
    struct start_turn start;  /* until the guest is ready */
    struct start_turn settle; /* then until it has settled */
    struct loop_timer *pause; /* armed: it is up, and stands still */
    bool cold;                /* templates are out of the question */
    bool from_pool;

    struct template *template; /* a reference; NULL: none */
    struct vm *vm;
    char reason[512]; /* of an end without a vm */
    uint64_t began_ms;
};

static void machine_set_state(struct machine *machine, enum machine_state state)
{
    static const unsigned moves[] = {
        [MACHINE_WAITING] = 1u << MACHINE_STARTING | 1u << MACHINE_ENDING,
        [MACHINE_STARTING] = 1u << MACHINE_WAITING | 1u << MACHINE_UP | 1u << MACHINE_ENDING |
                             1u << MACHINE_GONE,
        [MACHINE_UP] = 1u << MACHINE_ENDING | 1u << MACHINE_GONE,
        [MACHINE_ENDING] = 1u << MACHINE_GONE,
        [MACHINE_GONE] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == MACHINE_STATE_MAX, "moves of each state");

    assert(moves[machine->state] & 1u << state);
    machine->state = state;
}

static bool machine_take_turn(struct machine *machine, uint32_t hold_ms)
{
    return start_turn_take(&machine->start, START_CALLER, hold_ms);
}

/* Pausing. Until it settles it would only take a processor from those still waited for. By a
 * signal: nothing of it has to work for that, and a stop ends it all the same. */

static void machine_pause(struct machine *machine)
{
    if (vm_pause(machine->vm) == 0)
        loop_timer_arm(machine->pause, PAUSE_MS);
}

static void on_pause_over(void *ctx)
{
    struct machine *machine = ctx;

    (void)vm_resume(machine->vm); /* fails for one that ends */
}

static void machine_resume(struct machine *machine)
{
    if (!loop_timer_armed(machine->pause))
        return;
    loop_timer_disarm(machine->pause);
    on_pause_over(machine);
}

/* The end. */

static void machine_cancel_waits(struct machine *machine)
{
    loop_timer_disarm(machine->pause);
    loop_notice_cancel(machine->backend->loop, &machine->begin);
    template_wait_cancel(&machine->template_wait);
    boot_wait_cancel(&machine->boot_wait);
    start_turn_give(&machine->start);
    start_turn_give(&machine->settle);
}

/* It has no vm (any more) and gets none. */
static void machine_end(struct machine *machine, const char *reason)
{
    machine_cancel_waits(machine);
    machine_set_state(machine, MACHINE_ENDING);
    (void)snprintf(machine->reason, sizeof(machine->reason), "%s", reason);
    loop_defer(machine->backend->loop, &machine->end);
}

static void on_end(void *ctx)
{
    struct machine *machine = ctx;

    machine_set_state(machine, MACHINE_GONE);
    machine->events->gone(machine->ctx, machine->reason, "");
}

/* Another vm in place of the one that is gone. */
static void machine_begin_again(struct machine *machine)
{
    vm_free(take_ptr(machine->vm));
    machine->cold = true;
    template_unref(take_ptr(machine->template));
    machine_set_state(machine, MACHINE_WAITING);
    loop_defer(machine->backend->loop, &machine->begin);
}

static void on_vm_gone(void *ctx, const char *reason, const char *console)
{
    struct machine *machine = ctx;

    if (machine->state == MACHINE_STARTING && machine->template)
        log_event(LOG_WARN, "clone_failed", log_text("vm", machine->id),
                  log_text("reason", reason));
    if (machine->state == MACHINE_STARTING &&
        (machine->template || vm_may_retry(machine->vm))) {
        machine_begin_again(machine);
        return;
    }
    machine_cancel_waits(machine);
    machine_set_state(machine, MACHINE_GONE);
    machine->events->gone(machine->ctx, reason, console);
}

/* The start. */

static const char *machine_way(const struct machine *machine)
{
    return machine->from_pool ? "pool" : machine->template ? "clone" : "cold";
}

static void machine_up(struct machine *machine)
{
    const void *hello = NULL;
    size_t size = 0;
    const struct network *network = vm_network(machine->vm);
    int fd;

    if (machine->template)
        hello = template_hello(machine->template, &size);
    fd = vm_take_agent(machine->vm, hello, size);
    template_unref(take_ptr(machine->template));
    machine_set_state(machine, MACHINE_UP);
    if (fd < 0) {
        (void)vm_kill(machine->vm, "its agent's socket is full"); /* the owner has a deadline */
        return;
    }
    machine->events->agent(machine->ctx, fd, vm_take_mailbox(machine->vm),
                           network ? network_addresses(network) : NULL);
}

static void on_vm_up(void *ctx)
{
    struct machine *machine = ctx;

    log_event(LOG_INFO, "vm_up", log_text("vm", machine->id),
              log_text("way", machine_way(machine)),
              log_uint("vm_ms", vm_start_ms(machine->vm)),
              log_uint("ms", loop_now_ms(machine->backend->loop) - machine->began_ms));
    if (machine->state == MACHINE_STARTING)
        machine_up(machine);
}

static const struct vm_events vm_events = { .up = on_vm_up, .gone = on_vm_gone };

static void machine_spawn(struct machine *machine, struct vm_spec *spec)
{
    struct sandbox_error err = { 0 };

    spec->name = machine->id;
    if (vm_new(machine->backend, spec, &vm_events, machine, &machine->vm, &err) < 0)
        machine_end(machine, err.message);
    else
        machine_set_state(machine, MACHINE_STARTING);
    sandbox_error_done(&err);
}

/* The writable disk: a worker's own, or an empty one. *RET_FD is the caller's. */
static int machine_disk(struct machine *machine, const struct boot_file_set *files, int *ret_fd)
{
    if (machine->data_fd < 0)
        return scratch_copy(files->blank_fd, machine->backend->scratch_directory, ret_fd);
    *ret_fd = take_fd(&machine->data_fd);
    return 0;
}

static void machine_boot(struct machine *machine, const struct boot_file_set *files)
{
    const struct vm_lasting *lasting = machine->data_fd < 0 ? NULL : &machine->lasting;
    _cleanup_close_ int image_fd = image_open(machine->image), disk_fd = -1;
    int result = machine_disk(machine, files, &disk_fd);
    struct vm_spec spec = {
        .mode = QEMU_COLD,
        .shape = machine->shape,
        .image_fd = image_fd,
        .disk_fd = disk_fd,
        .kernel_fd = files->kernel_fd,
        .initrd_fd = files->initrd_fd,
        .memory_fd = -1,
        .state_fd = -1,
        .lasting = lasting,
    };

    if (image_fd < 0 || result < 0)
        machine_end(machine, strerror(image_fd < 0 ? -image_fd : -result));
    else
        machine_spawn(machine, &spec);
    closep(&machine->lasting.workspace_fd); /* QEMU's from now on */
    closep(&machine->lasting.lock_fd);
}

static void machine_begin_cold(struct machine *machine)
{
    const struct boot_file_set *files = boot_files_get(
        machine->backend->boot_files, machine->shape.disk_mb, &machine->boot_wait);

    if (files && machine_take_turn(machine, COLD_HOLD_MS))
        machine_boot(machine, files);
}

static void machine_begin_clone(struct machine *machine)
{
    struct vm_spec spec = { .kernel_fd = -1, .initrd_fd = -1 };
    int result;

    machine->vm = pool_take(machine->backend->pool, machine->template);
    if (machine->vm) {
        machine->from_pool = true;
        vm_hand_over(machine->vm, machine->id, &vm_events, machine);
        machine_set_state(machine, MACHINE_STARTING);
        on_vm_up(machine);
        return;
    }
    if (!machine_take_turn(machine, CLONE_HOLD_MS))
        return;
    result = template_clone(machine->template, &spec);
    if (result < 0) {
        machine_end(machine, strerror(-result));
        return;
    }
    machine_spawn(machine, &spec);
    closep(&spec.state_fd);
    closep(&spec.disk_fd);
}

/* Whatever was awaited is there, or has failed: looks again. */
static void machine_begin(struct machine *machine)
{
    struct backend *backend = machine->backend;

    assert(machine->state == MACHINE_WAITING);
    if (!machine->template && !machine->cold && backend->settings.templates)
        machine->template = template_get(backend->templates, machine->image, &machine->shape);
    if (machine->template && template_state(machine->template) == TEMPLATE_FAILED) {
        machine->cold = true;
        template_unref(take_ptr(machine->template));
    }
    if (!machine->template)
        machine_begin_cold(machine);
    else if (template_state(machine->template) == TEMPLATE_READY)
        machine_begin_clone(machine);
    else
        template_await(machine->template, &machine->template_wait);
}

static void on_begin(void *ctx)
{
    machine_begin(ctx);
}

static void on_template(void *ctx)
{
    machine_begin(ctx);
}

static void on_boot_files(void *ctx, const char *why)
{
    struct machine *machine = ctx;

    if (why)
        machine_end(machine, why);
    else
        machine_begin(machine);
}

/* Its guest may do now what it has put off. */
static void on_settle(void *ctx)
{
    struct machine *machine = ctx;

    machine_resume(machine);
    machine->events->settle(machine->ctx);
}

/* The operations. */

static int machine_take_lasting(struct machine *machine, const struct machine_lasting *lasting)
{
    machine->cold = true; /* no template has its disks */
    machine->data_fd = open(lasting->data, O_RDWR | O_CLOEXEC);
    machine->lasting.workspace_fd = open(lasting->workspace, O_RDONLY | O_CLOEXEC);
    machine->lasting.lock_fd = fcntl(lasting->lock_fd, F_DUPFD_CLOEXEC, 0);
    return machine->data_fd < 0 || machine->lasting.workspace_fd < 0 ||
                   machine->lasting.lock_fd < 0
               ? -errno
               : 0;
}

int machine_start(struct backend *backend, const struct machine_spec *spec,
                  const struct machine_events *events, void *ctx, struct machine **ret_machine,
                  struct sandbox_error *err)
{
    struct machine *machine = calloc(1, sizeof(*machine));
    struct loop_timer *pause;
    int result = 0;

    if (!machine || loop_timer_new(backend->loop, on_pause_over, machine, &pause) < 0) {
        free(machine);
        return sandbox_error_set(err, S300, "sandbox %s: out of memory", spec->id);
    }
    *machine = (struct machine){
        .backend = backend,
        .state = MACHINE_WAITING,
        .events = events,
        .ctx = ctx,
        .image = spec->image,
        .shape = { .cpus = spec->cpus,
                   .memory_mb = spec->memory_mb,
                   .disk_mb = spec->disk_mb,
                   .network = spec->network },
        .data_fd = -1,
        .lasting = { -1, -1 },
        .pause = pause,
        .began_ms = loop_now_ms(backend->loop),
    };
    (void)snprintf(machine->id, sizeof(machine->id), "%s", spec->id);
    start_turn_init(&machine->start, &backend->starts, machine->id, on_begin, machine);
    start_turn_init(&machine->settle, &backend->starts, machine->id, on_settle, machine);
    loop_notice_init(&machine->begin, on_begin, machine);
    loop_notice_init(&machine->end, on_end, machine);
    template_wait_init(&machine->template_wait, on_template, machine);
    boot_wait_init(&machine->boot_wait, on_boot_files, machine);
    if (spec->lasting)
        result = machine_take_lasting(machine, spec->lasting);
    if (result < 0) {
        machine_free(machine);
        return sandbox_error_set(err, S300, "sandbox %s: %s: %s", spec->id, spec->lasting->data,
                                 strerror(-result));
    }
    loop_defer(backend->loop, &machine->begin);
    *ret_machine = machine;
    return 0;
}

int machine_kill(struct machine *machine, struct sandbox_error *err)
{
    int result = 0;

    if (machine->state >= MACHINE_ENDING)
        return 0;
    if (machine->vm)
        result = vm_kill(machine->vm, "it was stopped");
    if (result < 0)
        return sandbox_error_set(err, S300, "%s cannot be killed: %s", machine->id,
                                 strerror(-result));
    if (machine->vm)
        machine_set_state(machine, MACHINE_ENDING);
    else
        machine_end(machine, "it was stopped before it began");
    return 0;
}

void machine_ready(struct machine *machine)
{
    if (machine->state != MACHINE_UP)
        return;
    start_turn_give(&machine->start);
    start_turn_ask(&machine->settle, START_SETTLE, SETTLE_HOLD_MS);
    if (machine->settle.state == START_TURN_WAITING)
        machine_pause(machine);
}

void machine_wanted(struct machine *machine)
{
    machine_resume(machine);
}

void machine_settled(struct machine *machine)
{
    start_turn_give(&machine->settle);
}

int64_t machine_last_payload(const struct machine *machine)
{
    const struct network *network = machine->vm ? vm_network(machine->vm) : NULL;

    return network ? network_last_payload(network) : -1;
}

uint64_t machine_disk_bytes(const struct machine *machine)
{
    return machine->vm ? vm_disk_bytes(machine->vm) : 0;
}

void machine_free(struct machine *machine)
{
    if (!machine)
        return;
    machine_cancel_waits(machine);
    loop_notice_cancel(machine->backend->loop, &machine->end);
    loop_timer_free(machine->pause);
    template_unref(machine->template);
    vm_free(machine->vm);
    closep(&machine->data_fd);
    closep(&machine->lasting.workspace_fd);
    closep(&machine->lasting.lock_fd);
    free(machine);
}
