/* machine.c - one sandbox's processes: bubblewrap, and below it a process namespace whose first
 * process is the guest agent. bubblewrap ends when that has ended, and the kernel ends the
 * whole namespace with it; so bubblewrap's end is the machine's. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "console.h"
#include "log.h"
#include "mock.h"
#include "proc.h"

/* starting  bubblewrap runs; `agent` is queued
 * up        the owner has the agent's socket
 * gone      reaped and told; only machine_free() may come */
enum machine_state { MACHINE_STARTING, MACHINE_UP, MACHINE_GONE, MACHINE_STATE_MAX };

struct machine {
    struct backend *backend;
    struct list node; /* in backend->machines */
    const struct machine_events *events;
    void *ctx;
    enum machine_state state;
    char id[64];
    bool network;
    pid_t pid; /* of bubblewrap */
    struct loop_child *child;
    struct console *console;
    struct loop_notice started;
    int channel_fd; /* until the owner has it */
};

static void machine_set_state(struct machine *machine, enum machine_state state)
{
    static const char *const names[] = { "starting", "up", "gone" };
    _Static_assert(ARRAY_SIZE(names) == MACHINE_STATE_MAX, "a name for each state");

    assert(state > machine->state);
    log_event(LOG_DEBUG, "machine_state", log_text("vm", machine->id),
              log_text("from", names[machine->state]), log_text("to", names[state]));
    machine->state = state;
}

static void machine_started(void *ctx)
{
    /* The host's own network: localhost is where it always was, and there is nothing to set. */
    static const struct machine_network shared = { .gateway = "127.0.0.1" };
    struct machine *machine = ctx;

    if (machine->state != MACHINE_STARTING)
        return;
    machine_set_state(machine, MACHINE_UP);
    machine->events->agent(machine->ctx, take_fd(&machine->channel_fd), -1,
                           machine->network ? &shared : NULL);
}

static void machine_ended(void *ctx, int wait_status)
{
    struct machine *machine = ctx;
    char reason[64];

    if (WIFSIGNALED(wait_status))
        (void)snprintf(reason, sizeof(reason), "killed by signal %d", WTERMSIG(wait_status));
    else
        (void)snprintf(reason, sizeof(reason), "ended with status %d",
                       WEXITSTATUS(wait_status));
    loop_child_free(take_ptr(machine->child));
    loop_notice_cancel(machine->backend->loop, &machine->started);
    machine_set_state(machine, MACHINE_GONE);
    machine->events->gone(machine->ctx, reason, console_tail(machine->console));
}

/* Signals the first process of the namespace: only when that is dead, and all others with it,
 * does bubblewrap end. False: it is not there (yet). */
static bool signal_inside(pid_t bwrap, int signal_number)
{
    char path[64], text[64] = { 0 };
    FILE *file;
    pid_t pid;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)bwrap, (int)bwrap);
    file = fopen(path, "re");
    if (!file)
        return false;
    (void)!fgets(text, sizeof(text), file);
    (void)fclose(file);
    pid = (pid_t)strtol(text, NULL, 10);
    return pid > 1 && kill(pid, signal_number) == 0;
}

int mock_machine_kill(struct machine *machine, struct sandbox_error *err)
{
    if (machine->state == MACHINE_GONE)
        return 0;
    if (script_take(&machine->backend->script, FAULT_REFUSE_STOP, "stop"))
        return sandbox_error_set(err, S300, "%s cannot be killed: a fault was asked for",
                                 machine->id);
    if (!signal_inside(machine->pid, SIGKILL))
        (void)kill(-machine->pid, SIGKILL); /* its session: a child may be in the making */
    return 0;
}

void mock_machine_freeze(struct backend *backend, const char *id)
{
    LIST_FOREACH(node, &backend->machines)
    {
        struct machine *machine = LIST_ENTRY(node, struct machine, node);

        if (machine->state != MACHINE_GONE && strcmp(machine->id, id) == 0)
            (void)signal_inside(machine->pid, SIGSTOP);
    }
}

static int machine_launch(struct machine *machine, const struct machine_spec *spec)
{
    struct loop *loop = machine->backend->loop;
    _cleanup_close_ int channel_fd = -1;
    _cleanup_close_ int console_fd = -1;
    int pair[2], pidfd, result;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    machine->channel_fd = pair[0];
    channel_fd = pair[1];
    result = console_new(loop, &machine->console, &console_fd);
    if (result < 0)
        return result;
    result = launcher_start(&machine->backend->launcher, spec, channel_fd, console_fd,
                            &machine->pid, &pidfd);
    if (result < 0)
        return result;
    result = loop_child_new(loop, machine->pid, pidfd, machine_ended, machine, &machine->child);
    if (result < 0)
        (void)kill(-machine->pid, SIGKILL); /* nobody would notice its end */
    return result;
}

int mock_machine_start(struct backend *backend, const struct machine_spec *spec,
                       const struct machine_events *events, void *ctx,
                       struct machine **ret_machine, struct sandbox_error *err)
{
    struct machine *machine = calloc(1, sizeof(*machine));
    int result;

    if (!machine)
        return sandbox_error_set(err, S300, "%s: no memory", spec->id);
    *machine = (struct machine){
        .backend = backend,
        .events = events,
        .ctx = ctx,
        .network = spec->network,
        .channel_fd = -1,
    };
    list_append(&backend->machines, &machine->node);
    (void)snprintf(machine->id, sizeof(machine->id), "%s", spec->id);
    loop_notice_init(&machine->started, machine_started, machine);
    result = machine_launch(machine, spec);
    if (result < 0) {
        mock_machine_free(machine);
        return sandbox_error_set(err, S300, "%s could not be started under %s: %s", spec->id,
                                 backend->launcher.bwrap, strerror(-result));
    }
    loop_notify(backend->loop, &machine->started);
    *ret_machine = machine;
    return 0;
}

int64_t mock_machine_last_payload(const struct machine *machine)
{
    return -1; /* nobody counts the host's own traffic */
}

void mock_machine_free(struct machine *machine)
{
    if (!machine)
        return;
    list_remove(&machine->node);
    loop_notice_cancel(machine->backend->loop, &machine->started);
    loop_child_free(machine->child);
    console_free(machine->console);
    closep(&machine->channel_fd);
    free(machine);
}
