/* tree_keeper.c - a tree behind a keeper process, seen from the agent.
 *
 * A program may kill its own keeper (`kill -9 -1` spares only pid 1). Then the program becomes
 * our child and the reaper here tells its end; of its children nothing is known any more, so a
 * later kill reaches the process group alone. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "keeper.h"
#include "log.h"
#include "tree_state.h"

/* While its end is being told: the tree must not be freed yet. */
#define KEEPER_ENDING (-1)

/* The program, as far as the agent knows. */
enum program_state { PROGRAM_STARTING, PROGRAM_RUNNING, PROGRAM_ENDED, PROGRAM_FAILED };

struct keeper_tree {
    struct tree tree;
    enum program_state state;
    pid_t pid;                  /* of the program, once it is born */
    int pending_signal;         /* it came before the keeper told of the start; 0: none */
    struct reap_watch keeper;   /* pid: of the keeper; KEEPER_ENDING; 0 once it is gone */
    struct reap_watch orphan;   /* the program, if it outlives its keeper */
    struct loop_notice confirm; /* of a kill when the keeper is gone */
    int control_fd;
    struct loop_io *control;
};

static struct keeper_tree *keeper_tree(struct tree *tree)
{
    return CONTAINER_OF(tree, struct keeper_tree, tree);
}

static void keeper_tree_free(struct keeper_tree *keeper)
{
    reaper_forget(keeper->tree.trees->reaper, &keeper->keeper);
    reaper_forget(keeper->tree.trees->reaper, &keeper->orphan);
    loop_notice_cancel(keeper->tree.trees->loop, &keeper->confirm);
    loop_io_free(keeper->control);
    closep(&keeper->control_fd);
    free(keeper);
}

static void program_ended(void *ctx, int wait_status)
{
    struct keeper_tree *keeper = ctx;

    reaper_forget(keeper->tree.trees->reaper, &keeper->orphan);
    keeper->state = PROGRAM_ENDED;
    if (keeper->tree.events)
        keeper->tree.events->ended(keeper->tree.ctx, wait_status);
}

static void program_born(struct keeper_tree *keeper, pid_t pid)
{
    keeper->pid = pid;
    if (reaper_watch(keeper->tree.trees->reaper, pid, program_ended, keeper, &keeper->orphan) <
        0)
        keeper->orphan.pid = 0; /* only needed when the keeper dies first */
}

static void program_started(struct keeper_tree *keeper)
{
    keeper->state = PROGRAM_RUNNING;
    if (keeper->pending_signal)
        (void)kill(-keeper->pid, keeper->pending_signal);
    if (keeper->tree.events)
        keeper->tree.events->started(keeper->tree.ctx);
}

static void program_failed(struct keeper_tree *keeper, const struct spawn_failure *failure)
{
    reaper_forget(keeper->tree.trees->reaper, &keeper->orphan);
    keeper->pid = 0;
    keeper->state = PROGRAM_FAILED;
    if (keeper->tree.events)
        keeper->tree.events->failed(keeper->tree.ctx, failure);
}

static void keeper_reported(struct keeper_tree *keeper, const struct keeper_report *report)
{
    const struct spawn_failure failure = {
        .step = (enum spawn_step)report->value,
        .error = report->error,
    };

    switch (report->kind) {
    case KEEPER_FORKED:
        program_born(keeper, report->value);
        break;
    case KEEPER_STARTED:
        program_started(keeper);
        break;
    case KEEPER_FAILED:
        program_failed(keeper, &failure);
        break;
    case KEEPER_ENDED:
        program_ended(keeper, report->value);
        break;
    default:
        break;
    }
}

/* One report a call: a callback may release the tree, which only the keeper's end frees. */
static bool control_read(struct keeper_tree *keeper)
{
    struct keeper_report report;

    if (recv(keeper->control_fd, &report, sizeof(report), MSG_DONTWAIT) != sizeof(report))
        return false;
    keeper_reported(keeper, &report);
    return true;
}

static void control_ready(void *ctx, uint32_t events)
{
    struct keeper_tree *keeper = ctx;

    (void)events;
    while (control_read(keeper))
        ;
    if (events & (EPOLLHUP | EPOLLERR))
        (void)loop_io_set_events(keeper->control, 0); /* its end is the reaper's to tell */
}

static void kill_confirm(void *ctx)
{
    struct keeper_tree *keeper = ctx;

    if (keeper->tree.kill != TREE_KILL_ASKED || !keeper->tree.events)
        return;
    keeper->tree.kill = TREE_KILL_CONFIRMED;
    keeper->tree.events->killed(keeper->tree.ctx);
}

/* Whether the program is ours to wait for; if not, it fell together with its keeper. */
static bool program_is_orphan(const struct keeper_tree *keeper)
{
    siginfo_t info;

    return keeper->pid > 0 &&
           waitid(P_PID, (id_t)keeper->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* The keeper is gone: with status 0 there is no process left, else it was killed. */
static void keeper_ended(void *ctx, int wait_status)
{
    static const struct spawn_failure lost = { .step = SPAWN_SETUP, .error = ECHILD };
    struct keeper_tree *keeper = ctx;

    keeper->keeper.pid = KEEPER_ENDING;
    while (control_read(keeper))
        ;
    if (keeper->state == PROGRAM_STARTING && program_is_orphan(keeper))
        program_started(keeper);
    if (keeper->state == PROGRAM_STARTING)
        program_failed(keeper, &lost);
    else if (keeper->state == PROGRAM_RUNNING && !program_is_orphan(keeper))
        program_ended(keeper, SIGKILL);
    if (wait_status != 0) {
        log_event(LOG_WARN, "keeper_lost", log_int("status", wait_status));
        if (keeper->tree.kill != TREE_KILL_NONE && keeper->pid > 0)
            (void)kill(-keeper->pid, SIGKILL);
    }
    kill_confirm(keeper);
    keeper->keeper.pid = 0;
    if (!keeper->tree.events)
        keeper_tree_free(keeper);
}

static void keeper_kill(struct tree *tree)
{
    struct keeper_tree *keeper = keeper_tree(tree);

    if (keeper->keeper.pid > 0) {
        (void)send(keeper->control_fd, KEEPER_KILL, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)kill(keeper->keeper.pid, SIGCONT); /* should a program have stopped it */
        return;
    }
    if (keeper->pid > 0)
        (void)kill(-keeper->pid, SIGKILL);
    loop_notify(tree->trees->loop, &keeper->confirm);
}

static void keeper_signal(struct tree *tree, int number)
{
    struct keeper_tree *keeper = keeper_tree(tree);

    if (keeper->state == PROGRAM_RUNNING)
        (void)kill(-keeper->pid, number); /* it may have ended in this moment */
    else if (keeper->state == PROGRAM_STARTING)
        keeper->pending_signal = number;
}

static void keeper_release(struct tree *tree)
{
    struct keeper_tree *keeper = keeper_tree(tree);

    if (keeper->keeper.pid == 0)
        keeper_tree_free(keeper);
}

static const struct tree_ops keeper_ops = {
    .kill = keeper_kill,
    .signal = keeper_signal,
    .release = keeper_release,
};

static int keeper_launch(struct keeper_tree *keeper, const struct spawn *spawn)
{
    struct trees *trees = keeper->tree.trees;
    _cleanup_close_ int theirs = -1;
    int pair[2];
    pid_t pid;
    int result;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    keeper->control_fd = pair[0];
    theirs = pair[1];
    result = loop_io_new(trees->loop, pair[0], EPOLLIN, control_ready, keeper,
                         &keeper->control);
    if (result < 0)
        return result;
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        keeper_main(theirs, trees->proc_fd, spawn);
    return reaper_watch(trees->reaper, pid, keeper_ended, keeper, &keeper->keeper);
}

int tree_keeper_start(struct trees *trees, const struct spawn *spawn, struct tree **ret_tree,
                      struct spawn_failure *ret_failure)
{
    struct keeper_tree *keeper = calloc(1, sizeof(*keeper));
    int result;

    if (!keeper) {
        *ret_failure = (struct spawn_failure){ .step = SPAWN_SETUP, .error = ENOMEM };
        return -1;
    }
    *keeper = (struct keeper_tree){
        .tree = { .ops = &keeper_ops, .trees = trees },
        .control_fd = -1,
    };
    loop_notice_init(&keeper->confirm, kill_confirm, keeper);
    result = keeper_launch(keeper, spawn);
    if (result < 0) {
        /* A keeper that runs kills its tree when its socket closes. */
        *ret_failure = (struct spawn_failure){ .step = SPAWN_SETUP, .error = -result };
        keeper->keeper.pid = 0;
        keeper_tree_free(keeper);
        return -1;
    }
    *ret_tree = &keeper->tree;
    return 0;
}
