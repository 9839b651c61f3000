/* vm_spawn.c - the start of a vm: sockets, descriptors, confinement, process.
 *
 * A clone's process comes from the zygote, as an event; what it is started with is kept until
 * then, because whatever is wrong with the zygote, QEMU can be executed with the same. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_state.h"
#include "codec.h"
#include "log.h"
#include "mailbox.h"
#include "network.h"
#include "proc.h"
#include "vm_state.h"
#include "zygote.h"

#define VM_FDS_MAX 16

/* The child's ends. */
struct vm_ends {
    int qmp_fd;
    int agent_fd;
    int console_fd;
    int rules_fd;
};

static const struct vm_ends no_ends = { -1, -1, -1, -1 };

static void ends_close(struct vm_ends *ends)
{
    closep(&ends->qmp_fd);
    closep(&ends->agent_fd);
    closep(&ends->console_fd);
    closep(&ends->rules_fd);
}

static int make_pair(int *ret_ours, int *ret_theirs)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return -errno;
    *ret_ours = fds[0];
    *ret_theirs = fds[1];
    return 0;
}

/* Not blocking on QEMU's side either: a guest that writes faster than we read loses some. */
static int make_pipe(int *ret_ours, int *ret_theirs)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    *ret_ours = fds[0];
    *ret_theirs = fds[1];
    return 0;
}

/* *RET_QMP is our end of the monitor. */
static int vm_connect(struct vm *vm, const struct vm_spec *spec, struct vm_ends *ret_ends,
                      int *ret_qmp)
{
    const int readable[] = { spec->kernel_fd, spec->initrd_fd };
    int result = make_pair(ret_qmp, &ret_ends->qmp_fd);

    if (result == 0)
        result = make_pair(&vm->agent_fd, &ret_ends->agent_fd);
    if (result == 0)
        result = make_pipe(&vm->console_fd, &ret_ends->console_fd);
    if (result == 0 && vm->backend->confine.landlock > 0) {
        ret_ends->rules_fd = confine_rules(&vm->backend->confine, readable,
                                           spec->mode == QEMU_CLONE ? 0 : ARRAY_SIZE(readable));
        result = ret_ends->rules_fd < 0 ? ret_ends->rules_fd : 0;
    }
    return result;
}

/* A clone under TCG touches little of many things, translated code for one: huge pages make
 * three MB more of it, and nothing measurably faster. */
static bool wants_small_pages(const struct vm *vm)
{
    return vm->mode == QEMU_CLONE && vm->accel == ACCEL_TCG;
}

/* What the process is started with; all of it is ours. */
struct vm_launch {
    struct zygote_wait wait;
    struct text_list arguments; /* a NULL behind the last one */
    struct confine_child child;
    struct proc_fd fds[VM_FDS_MAX];
    size_t fd_count;
    int qmp_fd; /* our end of the monitor */
};

void vm_launch_free(struct vm_launch *launch)
{
    if (!launch)
        return;
    zygote_wait_cancel(&launch->wait);
    text_list_done(&launch->arguments);
    for (size_t i = 0; i < launch->fd_count; i++)
        closep(&launch->fds[i].fd);
    closep(&launch->qmp_fd);
    free(launch);
}
DEFINE_CLEANUP(struct vm_launch *, vm_launch_free)

static int launch_put_fds(struct vm_launch *launch, const struct proc_fd *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int fd = all[i].fd < 0 ? -1 : fcntl(all[i].fd, F_DUPFD_CLOEXEC, 0);

        if (all[i].fd < 0)
            continue;
        if (fd < 0)
            return -errno;
        launch->fds[launch->fd_count++] = (struct proc_fd){ fd, all[i].target };
    }
    return 0;
}

static int vm_put_fds(struct vm *vm, const struct vm_spec *spec, const struct vm_ends *ends)
{
    const struct proc_fd all[] = {
        { ends->console_fd, 1 },
        { ends->console_fd, 2 },
        { ends->qmp_fd, QEMU_FD_QMP },
        { ends->agent_fd, QEMU_FD_AGENT },
        { spec->image_fd, QEMU_FD_IMAGE },
        { spec->disk_fd, QEMU_FD_DISK },
        { spec->kernel_fd, QEMU_FD_KERNEL },
        { spec->initrd_fd, QEMU_FD_INITRD },
        { spec->memory_fd, QEMU_FD_MEMORY },
        { spec->state_fd, QEMU_FD_STATE },
        { vm->network ? network_fd(vm->network) : -1, QEMU_FD_NETWORK },
        { spec->lasting ? spec->lasting->workspace_fd : -1, QEMU_FD_WORKSPACE },
        { spec->lasting ? spec->lasting->lock_fd : -1, QEMU_FD_LOCK },
        { vm->mailbox_fd, QEMU_FD_MAILBOX },
        { ends->rules_fd, QEMU_FD_LANDLOCK },
    };
    static_assert(ARRAY_SIZE(all) <= VM_FDS_MAX, "room for all");

    return launch_put_fds(vm->launch, all, ARRAY_SIZE(all));
}

/* A clone asks the zygote, and waits for it; *RET_PIDFD is -1 then. */
static int vm_process(struct vm *vm, bool ask, int *ret_pidfd)
{
    static const char *const environment[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
    struct vm_launch *launch = vm->launch;
    const struct proc_spec process = {
        .program = vm->backend->settings.program,
        .argv = (const char *const *)launch->arguments.items,
        .environment = environment,
        .workdir = "/",
        .fds = launch->fds,
        .fd_count = launch->fd_count,
        .new_session = true,
        .die_with_parent = true,
        .before_exec = confine_child,
        .before_exec_ctx = &launch->child,
    };

    *ret_pidfd = -1;
    if (ask && zygote_spawn(vm->backend->zygote, &process,
                            vm->accel == ACCEL_TCG ? QEMU_FD_AGENT : -1, &launch->wait) == 0)
        return 0;
    return proc_spawn(&process, &vm->pid, ret_pidfd);
}

static int vm_arguments(const struct vm *vm, const struct vm_spec *spec, struct text_list *to)
{
    const struct backend *backend = vm->backend;
    int result = qemu_args_build(
        &(struct qemu_args_spec){ .program = backend->settings.program,
                                  .mode = spec->mode,
                                  .shape = spec->shape,
                                  .accel = backend->accel,
                                  .translation_mb = backend->settings.translation_mb,
                                  .lasting = spec->lasting != NULL,
                                  .command_line = backend->settings.command_line },
        to);
    char **items;

    if (result < 0)
        return result;
    items = realloc(to->items, (to->count + 1) * sizeof(*items)); /* for the NULL of argv */
    if (!items)
        return -ENOMEM;
    items[to->count] = NULL;
    to->items = items;
    return 0;
}

/* From here on it is watched. A failure leaves what vm_free() can end. */
static int vm_watch(struct vm *vm, int own_pidfd, int own_qmp)
{
    static const struct qmp_events qmp_events = { .event = vm_on_qmp_event,
                                                  .closed = vm_on_qmp_closed };
    struct loop *loop = vm->backend->loop;
    int result = loop_child_new(loop, vm->pid, own_pidfd, vm_on_child, vm, &vm->child);

    if (result < 0) {
        (void)kill(vm->pid, SIGKILL); /* nobody would notice its end */
        closep(&own_qmp);
        return result;
    }
    result = qmp_new(loop, own_qmp, &qmp_events, vm, &vm->qmp);
    if (result == 0)
        result = loop_io_new(loop, vm->console_fd, EPOLLIN, vm_on_console, vm, &vm->console_io);
    if (result == 0 && vm->mode != QEMU_CLONE)
        result = loop_io_new(loop, vm->agent_fd, EPOLLIN, vm_on_agent, vm, &vm->agent_io);
    if (result == 0 && vm->backend->accel.unproven)
        result = loop_timer_new(loop, vm_on_trial, vm, &vm->trial);
    if (result == 0 && vm->trial)
        loop_timer_arm(vm->trial, ACCEL_TRIAL_MS);
    return result;
}

/* Its process is there. A failure leaves what vm_free() can end. */
static int vm_started(struct vm *vm, int own_pidfd)
{
    _cleanup_(vm_launch_freep)
    struct vm_launch *launch = take_ptr(vm->launch);
    int result = vm_watch(vm, own_pidfd, take_fd(&launch->qmp_fd));

    if (result == 0 && vm->mode == QEMU_CLONE)
        vm_restore(vm);
    return result;
}

static void on_spawned(void *ctx, int result, pid_t pid, int own_pidfd)
{
    struct vm *vm = ctx;
    char why[VM_REASON_MAX];

    vm->from_zygote = result == 0;
    vm->pid = pid;
    if (result == -EAGAIN)
        result = vm_process(vm, false, &own_pidfd);
    if (result == 0)
        result = vm_started(vm, own_pidfd);
    if (result == 0)
        return;
    (void)snprintf(why, sizeof(why), "QEMU cannot be started: %s", strerror(-result));
    vm_fail(vm, why);
}

static int vm_launch_new(struct vm *vm, const struct vm_spec *spec, const struct vm_ends *ends,
                         int own_qmp)
{
    struct vm_launch *launch = calloc(1, sizeof(*launch));
    int result;

    if (!launch) {
        closep(&own_qmp);
        return -ENOMEM;
    }
    launch->qmp_fd = own_qmp;
    launch->child = (struct confine_child){ .confine = &vm->backend->confine,
                                            .rules_fd = ends->rules_fd < 0 ? -1
                                                                           : QEMU_FD_LANDLOCK,
                                            .small_pages = wants_small_pages(vm) };
    zygote_wait_init(&launch->wait, on_spawned, vm);
    vm->launch = launch;
    result = vm_put_fds(vm, spec, ends);
    return result < 0 ? result : vm_arguments(vm, spec, &launch->arguments);
}

/* *RET_WHAT: the program that could not be started, if it was one. */
static int vm_start(struct vm *vm, const struct vm_spec *spec, const char **ret_what)
{
    _cleanup_(ends_close)
    struct vm_ends ends = no_ends;
    _cleanup_close_ int qmp_fd = -1;
    int pidfd, result = vm_connect(vm, spec, &ends, &qmp_fd);

    *ret_what = vm->backend->settings.program;
    if (result == 0 && spec->shape.network && spec->mode != QEMU_TEMPLATE) {
        result = network_new(vm->backend, vm->name, &vm->network);
        if (result < 0)
            *ret_what = "the relay of its network";
    }
    if (result == 0 && !spec->lasting && spec->disk_fd >= 0) {
        vm->disk_fd = fcntl(spec->disk_fd, F_DUPFD_CLOEXEC, 0);
        result = vm->disk_fd < 0 ? -errno : 0;
    }
    if (result == 0) {
        vm->mailbox_fd = mailbox_memory_new();
        result = vm->mailbox_fd < 0 ? vm->mailbox_fd : 0;
    }
    if (result == 0)
        result = vm_launch_new(vm, spec, &ends, take_fd(&qmp_fd));
    if (result == 0)
        result = vm_process(vm, spec->mode == QEMU_CLONE, &pidfd);
    if (result < 0)
        return result;
    if (spec->mode != QEMU_COLD)
        vm->agent_peer_fd = take_fd(&ends.agent_fd);
    return pidfd < 0 ? 0 : vm_started(vm, pidfd);
}

int vm_new(struct backend *backend, const struct vm_spec *spec, const struct vm_events *events,
           void *ctx, struct vm **ret_vm, struct sandbox_error *err)
{
    _cleanup_(vm_freep)
    struct vm *vm = calloc(1, sizeof(*vm));
    const char *what;
    int result;

    if (!vm)
        return sandbox_error_set(err, S300, "out of memory");
    *vm = (struct vm){
        .backend = backend,
        .mode = spec->mode,
        .accel = backend->accel.kind,
        .state = spec->mode == QEMU_CLONE ? VM_LAUNCHING : VM_BOOTING,
        .agent_fd = -1,
        .agent_peer_fd = -1,
        .disk_fd = -1,
        .mailbox_fd = -1,
        .console_fd = -1,
        .began_ms = loop_now_ms(backend->loop),
    };
    loop_notice_init(&vm->ended, vm_on_ended, vm);
    list_append(&backend->vms, &vm->node);
    (void)snprintf(vm->name, sizeof(vm->name), "%s", spec->name); /* cut is fine in the log */
    result = vm_start(vm, spec, &what);
    if (result < 0)
        return sandbox_error_set(err, S300, "%s cannot be started: %s", what,
                                 strerror(-result));
    vm->events = events;
    vm->ctx = ctx;
    *ret_vm = take_ptr(vm);
    return 0;
}
