/* keeper.c - see keeper.h.
 *
 * Why killing converges without polling: a process with a pending SIGKILL cannot fork. So each
 * pass leaves only processes that were forked before their parent was hit. Such a parent dies,
 * its children move up until they are ours, and a death somewhere above them is ours to hear
 * of (SIGCHLD); then the next pass sees them. */
#include "keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"

#define ASIDE_FD 16 /* first number for copies on their way to their places */

enum { CONTROL_FD = 3, PROC_FD, PROGRAM_FDS, FIRST_UNUSED_FD = PROGRAM_FDS + 3 };

/* Killing. */

struct kill_pass {
    pid_t pids[KEEPER_PASS_MAX];
    unsigned count;
};

/* Kills the children that TEXT lists and notes them, to look below them as well. */
static void pass_take(struct kill_pass *pass, char *text)
{
    char *rest = NULL;

    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        pid_t pid = (pid_t)strtol(word, NULL, 10);

        if (pid <= 1 || pass->count == KEEPER_PASS_MAX)
            continue;
        (void)kill(pid, SIGKILL); /* gone already is as good */
        pass->pids[pass->count++] = pid;
    }
}

/* The children of one thread. The file is read piece by piece; a number torn by the end of a
 * piece is carried over to the next. */
static void pass_read_children(struct kill_pass *pass, int task_fd, const char *thread)
{
    char path[64], text[4096];
    _cleanup_close_ int fd = -1;
    size_t kept = 0;
    ssize_t size;

    (void)snprintf(path, sizeof(path), "%.20s/children", thread);
    fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((size = read(fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
        char *end;

        kept += (size_t)size;
        text[kept] = 0;
        end = strrchr(text, ' ');
        if (!end)
            continue;
        *end++ = 0;
        kept -= (size_t)(end - text);
        pass_take(pass, text);
        memmove(text, end, kept);
    }
    text[kept] = 0;
    pass_take(pass, text);
}

static void pass_look_below(struct kill_pass *pass, int proc_fd, pid_t pid)
{
    char path[32];
    struct dirent *entry;
    DIR *tasks;
    int fd;

    (void)snprintf(path, sizeof(path), "%d/task", (int)pid);
    fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    tasks = fdopendir(fd);
    if (!tasks) {
        (void)close(fd);
        return;
    }
    while ((entry = readdir(tasks))) {
        if (entry->d_name[0] != '.')
            pass_read_children(pass, fd, entry->d_name);
    }
    (void)closedir(tasks);
}

unsigned keeper_kill_below(int proc_fd, pid_t pid)
{
    static struct kill_pass pass; /* a keeper has one thread */

    pass.count = 0;
    pass_look_below(&pass, proc_fd, pid);
    for (unsigned i = 0; i < pass.count; i++)
        pass_look_below(&pass, proc_fd, pass.pids[i]);
    return pass.count;
}

/* The keeper's life. */

static void report(enum keeper_report_kind kind, int value, int error)
{
    const struct keeper_report message = { .kind = kind, .value = value, .error = error };

    (void)send(CONTROL_FD, &message, sizeof(message), MSG_NOSIGNAL); /* the agent may be gone */
}

/* Reaps what can be reaped. Leaves for good when the tree is empty. */
static void collect(pid_t program)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid == program)
            report(KEEPER_ENDED, status, 0);
    }
    if (pid < 0 && errno == ECHILD)
        _exit(0);
}

/* Moves what is needed to fixed numbers and closes the rest: above all, no copy of the
 * program's pipes may stay open here. */
static bool take_descriptors(int control_fd, int proc_fd, const struct spawn *spawn)
{
    const int sources[] = { control_fd, proc_fd, spawn->fds[0], spawn->fds[1], spawn->fds[2] };
    int aside[ARRAY_SIZE(sources)];

    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        aside[i] = fcntl(sources[i], F_DUPFD, ASIDE_FD);
        if (aside[i] < 0)
            return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        if (dup3(aside[i], CONTROL_FD + (int)i, O_CLOEXEC) < 0)
            return false;
    }
    return syscall(SYS_close_range, FIRST_UNUSED_FD, ~0u, 0) == 0;
}

static int children_signal_fd(void)
{
    sigset_t children;

    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &children, NULL);
    return signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* By the program itself before its exec, for it may be quicker to kill its keeper than the
 * keeper to tell of it. */
CHILD_CODE static void announce(pid_t pid)
{
    const struct keeper_report message = { .kind = KEEPER_FORKED, .value = pid };

    (void)syscall(SYS_sendto, CONTROL_FD, &message, sizeof(message), MSG_NOSIGNAL, NULL, 0);
}

static pid_t start_program(const struct spawn *spawn)
{
    struct spawn mine = *spawn;
    struct spawn_failure failure;
    pid_t pid;

    for (int i = 0; i < 3; i++)
        mine.fds[i] = PROGRAM_FDS + i;
    mine.announce = announce;
    pid = spawn_program(&mine, &failure);
    (void)syscall(SYS_close_range, PROGRAM_FDS, FIRST_UNUSED_FD - 1, 0);
    if (pid < 0) {
        report(KEEPER_FAILED, (int)failure.step, failure.error);
        _exit(0);
    }
    report(KEEPER_STARTED, 0, 0);
    return pid;
}

static void keep(pid_t program, int signal_fd)
{
    struct pollfd sources[] = {
        { .fd = signal_fd, .events = POLLIN },
        { .fd = CONTROL_FD, .events = POLLIN },
    };
    bool killing = false;

    for (;;) {
        struct signalfd_siginfo info;

        if (poll(sources, ARRAY_SIZE(sources), -1) < 0)
            continue;
        if (sources[1].revents) {
            killing = true;
            sources[1].fd = -1;
            (void)setpriority(PRIO_PROCESS, 0, -20); /* against a storm of forks */
        }
        (void)!read(signal_fd, &info, sizeof(info)); /* before collect(): nothing is missed */
        collect(program);
        if (killing)
            (void)keeper_kill_below(PROC_FD, getpid());
    }
}

_Noreturn void keeper_main(int control_fd, int proc_fd, const struct spawn *spawn)
{
    int signal_fd;

    (void)setsid();
    if (!take_descriptors(control_fd, proc_fd, spawn) ||
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        _exit(1);
    (void)prctl(PR_SET_NAME, "exec-keeper", 0, 0, 0);
    signal_fd = children_signal_fd();
    if (signal_fd < 0)
        _exit(1);
    keep(start_program(spawn), signal_fd);
    _exit(1);
}
