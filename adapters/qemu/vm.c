/* vm.c - see vm.h. vm_spawn.c starts the process. */
#include "vm.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_state.h"
#include "log.h"
#include "network.h"
#include "vm_state.h"
#include "zygote.h"

#define ST_BLOCK_BYTES 512 /* of stat(2), whatever the file system */

#define RESTORE_TIMEOUT_MS 20000u

static const char *const state_names[] = {
    [VM_LAUNCHING] = "launching", [VM_BOOTING] = "booting",
    [VM_RESTORING] = "restoring", [VM_UP] = "up",
    [VM_STOPPING] = "stopping",   [VM_GONE] = "gone",
};
static_assert(ARRAY_SIZE(state_names) == VM_STATE_MAX, "a name for each state");

bool vm_move_allowed(enum vm_state from, enum vm_state to)
{
    static const unsigned moves[] = {
        [VM_LAUNCHING] = 1u << VM_RESTORING | 1u << VM_STOPPING,
        [VM_BOOTING] = 1u << VM_UP | 1u << VM_STOPPING | 1u << VM_GONE,
        [VM_RESTORING] = 1u << VM_UP | 1u << VM_STOPPING | 1u << VM_GONE,
        [VM_UP] = 1u << VM_STOPPING | 1u << VM_GONE,
        [VM_STOPPING] = 1u << VM_GONE,
        [VM_GONE] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == VM_STATE_MAX, "moves of each state");

    return moves[from] & 1u << to;
}

static void vm_set_state(struct vm *vm, enum vm_state state)
{
    assert(vm_move_allowed(vm->state, state));
    log_event(LOG_DEBUG, "vm_state", log_text("vm", vm->name), log_int("pid", vm->pid),
              log_text("from", state_names[vm->state]), log_text("to", state_names[state]),
              log_uint("ms", loop_now_ms(vm->backend->loop) - vm->began_ms));
    vm->state = state;
}

enum vm_state vm_state(const struct vm *vm)
{
    return vm->state;
}

const char *vm_name(const struct vm *vm)
{
    return vm->name;
}

pid_t vm_pid(const struct vm *vm)
{
    return vm->pid;
}

uint64_t vm_start_ms(const struct vm *vm)
{
    return (vm->up_ms ? vm->up_ms : loop_now_ms(vm->backend->loop)) - vm->began_ms;
}

struct qmp *vm_qmp(struct vm *vm)
{
    return vm->qmp;
}

const struct network *vm_network(const struct vm *vm)
{
    return vm->network;
}

uint64_t vm_disk_bytes(const struct vm *vm)
{
    struct stat status;

    return vm->disk_fd >= 0 && fstat(vm->disk_fd, &status) == 0
               ? (uint64_t)status.st_blocks * ST_BLOCK_BYTES
               : 0;
}

int vm_agent_fd(const struct vm *vm)
{
    return vm->agent_fd;
}

/* The console. */

static void vm_console_read(struct vm *vm)
{
    char data[4096];
    ssize_t size = read(vm->console_fd, data, sizeof(data));

    if (size > 0)
        console_append(&vm->console, data, (size_t)size);
    else if (size == 0 || (errno != EAGAIN && errno != EINTR))
        loop_io_free(take_ptr(vm->console_io));
}

void vm_on_console(void *ctx, uint32_t events)
{
    vm_console_read(ctx);
}

void vm_fail(struct vm *vm, const char *reason)
{
    vm->failed |= vm->state < VM_STOPPING;
    (void)vm_kill(vm, reason);
}

/* Up. */

static void vm_up(struct vm *vm)
{
    if (vm->accel != vm->backend->accel.kind) {
        vm_fail(vm, "its accelerator was given up");
        return;
    }
    vm->backend->accel.unproven = false;
    if (vm->from_zygote)
        zygote_prove(vm->backend->zygote);
    loop_timer_free(take_ptr(vm->trial));
    vm_set_state(vm, VM_UP);
    vm->up_ms = loop_now_ms(vm->backend->loop);
    loop_io_free(take_ptr(vm->agent_io));
    if (vm->events)
        vm->events->up(vm->ctx);
}

/* The agent's first bytes, or the end of its socket: then the process ends as well. One that
 * was stopped meanwhile does not come up any more. */
void vm_on_agent(void *ctx, uint32_t events)
{
    struct vm *vm = ctx;
    char byte;

    if (vm->state == VM_BOOTING && recv(vm->agent_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
        vm_up(vm);
    else
        loop_io_free(take_ptr(vm->agent_io));
}

static void on_continued(void *ctx, const json_t *value, const char *error)
{
    struct vm *vm = ctx;

    if (error)
        vm_fail(vm, error);
    else if (vm->state == VM_RESTORING)
        vm_up(vm);
}

static void on_step(void *ctx, const json_t *value, const char *error)
{
    if (error)
        vm_fail(ctx, error);
}

static void vm_execute(struct vm *vm, const char *command, json_t *own_arguments,
                       qmp_done_fn done)
{
    if (qmp_execute(vm->qmp, command, own_arguments, RESTORE_TIMEOUT_MS, done, vm) < 0)
        vm_fail(vm, "QEMU's monitor cannot be used");
}

void vm_restore(struct vm *vm)
{
    vm_set_state(vm, VM_RESTORING);
    vm_execute(vm, "migrate-set-capabilities", vm_migration_capabilities(), on_step);
    vm_execute(vm, "migrate-incoming", json_pack("{s:s}", "uri", VM_STATE_URI), on_step);
}

json_t *vm_migration_capabilities(void)
{
    return json_pack("{s:[{s:s,s:b},{s:s,s:b}]}", "capabilities", "capability",
                     "x-ignore-shared", "state", 1, "capability", "events", "state", 1);
}

static void vm_restore_event(struct vm *vm, const char *status)
{
    if (strcmp(status, "completed") == 0)
        vm_execute(vm, "cont", NULL, on_continued);
    else if (strcmp(status, "failed") == 0)
        vm_fail(vm, "QEMU cannot load the template's state");
}

/* QEMU ends by itself now; why is said here and nowhere else. */
static void vm_guest_ended(struct vm *vm, const char *why)
{
    static const char *const rows[][2] = {
        { "guest-shutdown", "the guest powered off" },
        { "guest-reset", "the guest's kernel gave up or restarted" },
        { "guest-panic", "the guest's kernel gave up" },
    };

    vm->may_end = true;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (!vm->reason[0] && strcmp(rows[i][0], why) == 0)
            (void)snprintf(vm->reason, sizeof(vm->reason), "%s", rows[i][1]);
}

void vm_on_qmp_event(void *ctx, const char *name, const json_t *data)
{
    struct vm *vm = ctx;
    const char *status = json_string_value(json_object_get(data, "status"));
    const char *why = json_string_value(json_object_get(data, "reason"));

    if (strcmp(name, "SHUTDOWN") == 0 && why)
        vm_guest_ended(vm, why);
    if (strcmp(name, "MIGRATION") != 0 || !status)
        return;
    if (vm->state == VM_RESTORING)
        vm_restore_event(vm, status);
    else if (vm->on_migration)
        vm->on_migration(vm->ctx, status);
}

/* Without a monitor a machine is of no use to us, with one that lies neither. */
void vm_on_qmp_closed(void *ctx, const char *reason)
{
    struct vm *vm = ctx;

    qmp_free(take_ptr(vm->qmp));
    if (vm->state < VM_STOPPING && !vm->may_end)
        vm_fail(vm, reason);
}

void vm_watch_migration(struct vm *vm, void (*fn)(void *ctx, const char *status))
{
    vm->on_migration = fn;
}

void vm_expect_end(struct vm *vm)
{
    vm->may_end = true;
}

void vm_hand_over(struct vm *vm, const char *name, const struct vm_events *events, void *ctx)
{
    vm->events = events;
    vm->ctx = ctx;
    if (name)
        (void)snprintf(vm->name, sizeof(vm->name), "%s", name);
}

int vm_say_hello(struct vm *vm, const void *hello, size_t size)
{
    assert(vm->state == VM_UP && vm->mode != QEMU_COLD);
    if (vm->agent_peer_fd < 0 ||
        send(vm->agent_peer_fd, hello, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
        return -1;
    return 0;
}

int vm_take_agent(struct vm *vm, const void *hello, size_t size)
{
    bool told;

    assert(vm->state == VM_UP);
    if (vm->agent_fd < 0)
        return -1;
    told = size == 0 || vm_say_hello(vm, hello, size) == 0;
    closep(&vm->agent_peer_fd);
    return told ? take_fd(&vm->agent_fd) : -1;
}

int vm_take_mailbox(struct vm *vm)
{
    return take_fd(&vm->mailbox_fd);
}

int vm_pause(struct vm *vm)
{
    return vm->state == VM_UP ? loop_child_kill(vm->child, SIGSTOP) : -EINVAL;
}

int vm_resume(struct vm *vm)
{
    return vm->state == VM_UP ? loop_child_kill(vm->child, SIGCONT) : -EINVAL;
}

/* The end. */

static void describe_end(struct vm *vm, int wait_status, char *ret_reason, size_t size)
{
    char line[256];

    console_last_line(&vm->console, line, sizeof(line));
    if (vm->reason[0])
        (void)snprintf(ret_reason, size, "%s", vm->reason);
    else if (WIFSIGNALED(wait_status))
        (void)snprintf(ret_reason, size, "QEMU was ended by signal %d", WTERMSIG(wait_status));
    else if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
        (void)snprintf(ret_reason, size, "the guest ended");
    else
        (void)snprintf(ret_reason, size, "QEMU ended with status %d: %s",
                       WEXITSTATUS(wait_status), line);
}

static void vm_release(struct vm *vm)
{
    vm_launch_free(vm->launch);
    loop_notice_cancel(vm->backend->loop, &vm->ended);
    network_free(vm->network);
    qmp_free(vm->qmp);
    loop_timer_free(vm->trial);
    loop_child_free(vm->child);
    loop_io_free(vm->console_io);
    loop_io_free(vm->agent_io);
    closep(&vm->console_fd);
    closep(&vm->agent_fd);
    closep(&vm->disk_fd);
    closep(&vm->mailbox_fd);
    closep(&vm->agent_peer_fd);
    list_remove(&vm->node);
    free(vm);
}

void vm_on_trial(void *ctx)
{
    vm_fail(ctx, "its guest did not come up in time");
}

/* A clone that never came up says that the zygote is no good, unless that has made others. */
static void vm_judge_zygote(const struct vm *vm, const char *reason)
{
    if (vm->from_zygote && vm->failed && vm->up_ms == 0)
        zygote_doubt(vm->backend->zygote, reason);
}

/* A guest that never came up says that its accelerator is no good, unless it has served others.
 */
static void vm_judge(const struct vm *vm, const char *reason)
{
    struct accel *accel = &vm->backend->accel;
    char line[256], why[VM_REASON_MAX + sizeof(line) + 2];

    if (!vm->trial || !vm->failed || !accel->unproven)
        return;
    console_last_line(&vm->console, line, sizeof(line));
    (void)snprintf(why, sizeof(why), "%s; %s", reason, line);
    accel_give_up(accel, why);
}

bool vm_may_retry(const struct vm *vm)
{
    return vm->failed && vm->accel != vm->backend->accel.kind;
}

static void vm_gone(struct vm *vm, int wait_status)
{
    char reason[VM_REASON_MAX], console[CONSOLE_BYTES_MAX + 1];

    for (int i = 0; vm->console_io && i < 16; i++) /* the pipe's 64 KiB */
        vm_console_read(vm);
    vm->failed |= vm->state < VM_STOPPING;
    vm_set_state(vm, VM_GONE);
    if (!vm->events) {
        vm_release(vm);
        return;
    }
    describe_end(vm, wait_status, reason, sizeof(reason));
    vm_judge(vm, reason);
    vm_judge_zygote(vm, reason);
    console_tail(&vm->console, console);
    vm->events->gone(vm->ctx, reason, console);
}

void vm_on_child(void *ctx, int wait_status)
{
    struct vm *vm = ctx;

    loop_child_free(take_ptr(vm->child));
    vm_gone(vm, wait_status);
}

void vm_on_ended(void *ctx)
{
    vm_gone(ctx, 0);
}

int vm_kill(struct vm *vm, const char *reason)
{
    int result = 0;

    if (vm->state >= VM_STOPPING)
        return 0;
    if (vm->child)
        result = loop_child_kill(vm->child, SIGKILL);
    if (result < 0 && result != -ESRCH)
        return result;
    if (!vm->child) {
        vm_launch_free(take_ptr(vm->launch));
        loop_defer(vm->backend->loop, &vm->ended);
    }
    if (!vm->reason[0])
        (void)snprintf(vm->reason, sizeof(vm->reason), "%s", reason);
    vm_set_state(vm, VM_STOPPING);
    return 0;
}

void vm_free(struct vm *vm)
{
    if (!vm)
        return;
    vm->events = NULL;
    vm->on_migration = NULL;
    if (!vm->child) {
        vm_release(vm);
        return;
    }
    qmp_free(take_ptr(vm->qmp));
    (void)vm_kill(vm, "not needed any more"); /* its process is reaped in vm_on_child() */
}

void vms_end(struct list *vms)
{
    LIST_FOREACH(node, vms)
    {
        struct vm *vm = LIST_ENTRY(node, struct vm, node);
        siginfo_t end = { 0 };

        if (vm->child) {
            (void)loop_child_kill(vm->child, SIGKILL);
            (void)waitid(P_PID, (id_t)vm->pid, &end, WEXITED);
        }
        vm_release(vm);
    }
}
