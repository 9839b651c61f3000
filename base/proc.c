/* proc.c - see proc.h.
 *
 * The child borrows our memory (CLONE_VM) and we sleep until it has exec'd or ended
 * (CLONE_VFORK). Its code therefore makes raw system calls only: it must not touch what libc or
 * a sanitizer keeps about our process. Its stack and its report are one shared mapping, so that
 * the report arrives also when a before_exec hook asked for a copy of our memory. */
#include "proc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CHILD_STACK_BYTES (256u * 1024)
#define CHILD_GUARD_BYTES (64u * 1024) /* a multiple of every page size */
#define CHILD_FD_MAX 64
#define CLOSE_ON_EXEC_FLAG 4u /* CLOSE_RANGE_CLOEXEC */

#if defined(__clang__)
#define CHILD_CODE __attribute__((no_sanitize("address", "thread", "undefined", "coverage")))
#else
#define CHILD_CODE __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

/* All the child needs, prepared before the clone; lives at the top of its stack mapping. */
struct child {
    const struct proc_spec *spec;
    const char *program;
    char *const *environment;
    pid_t parent;
    int program_fd;     /* found ahead of the hook; -1: there is none */
    int lowest_free_fd; /* above every target */
    int moved[CHILD_FD_MAX];
    volatile int error; /* 0, or -errno of the step that failed */
};

#define CHILD_RECORD_BYTES 1024u /* keeps the stack below it aligned */
static_assert(sizeof(struct child) <= CHILD_RECORD_BYTES, "the record has its place");

CHILD_CODE static int child_signals_default(void)
{
    /* A zeroed kernel sigaction is SIG_DFL, whatever its layout here. */
    static const char kernel_action[64];
    uint64_t none = 0;

    for (int number = 1; number <= 64; number++)
        (void)syscall(SYS_rt_sigaction, number, kernel_action, NULL,
                      sizeof(none)); /* not KILL */
    return (int)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

CHILD_CODE static int child_null_fds(const struct proc_spec *spec)
{
    unsigned listed = 0;
    long null_fd = -1;

    for (size_t i = 0; i < spec->fd_count; i++) {
        if (spec->fds[i].target <= 2)
            listed |= 1u << spec->fds[i].target;
    }
    for (int target = 0; target <= 2; target++) {
        if (listed & 1u << target)
            continue;
        if (null_fd < 0)
            null_fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd < 0)
            return -1;
        /* When the number is its own, dup3 refuses; clearing the flag does the same. */
        if (null_fd == target ? syscall(SYS_fcntl, target, F_SETFD, 0) < 0
                              : syscall(SYS_dup3, (int)null_fd, target, 0) < 0)
            return -1;
    }
    return 0;
}

/* First all move above every target, so that no target overwrites one still needed. */
CHILD_CODE static int child_place_fds(struct child *child)
{
    const struct proc_spec *spec = child->spec;

    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_ON_EXEC_FLAG) < 0)
        return -1;
    for (size_t i = 0; i < spec->fd_count; i++) {
        child->moved[i] = (int)syscall(SYS_fcntl, spec->fds[i].fd, F_DUPFD_CLOEXEC,
                                       child->lowest_free_fd);
        if (child->moved[i] < 0)
            return -1;
    }
    for (size_t i = 0; i < spec->fd_count; i++) {
        if (syscall(SYS_dup3, child->moved[i], spec->fds[i].target, 0) < 0)
            return -1;
    }
    return child_null_fds(spec);
}

CHILD_CODE static int child_prepare(struct child *child)
{
    const struct proc_spec *spec = child->spec;

    if (spec->new_session && syscall(SYS_setsid) < 0)
        return -1;
    if (child_place_fds(child) < 0)
        return -1;
    if (spec->workdir && syscall(SYS_chdir, spec->workdir) < 0)
        return -1;
    if (spec->before_exec) {
        int result;

        if (child->program)
            child->program_fd = (int)syscall(SYS_openat, AT_FDCWD, child->program,
                                             O_PATH | O_CLOEXEC);
        result = spec->before_exec(spec->before_exec_ctx);

        if (result < 0) {
            errno = -result;
            return -1;
        }
    }
    if (!spec->die_with_parent) /* after the hook: a change of user clears it */
        return 0;
    if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -1;
    if (syscall(SYS_getppid) != child->parent) {
        errno = ESRCH;
        return -1;
    }
    return 0;
}

CHILD_CODE static int child_main(void *argument)
{
    struct child *child = argument;

    if (child_prepare(child) == 0 && child_signals_default() == 0) {
        (void)syscall(SYS_execve, child->program, child->spec->argv, child->environment);
        if (errno == EACCES && child->program_fd >= 0)
            (void)syscall(SYS_execveat, child->program_fd, "", child->spec->argv,
                          child->environment, AT_EMPTY_PATH);
    }
    child->error = -errno;
    (void)syscall(SYS_exit_group, 127);
    return 127;
}

int proc_find(const char *name, char ret_path[PROC_PATH_MAX])
{
    const char *path = getenv("PATH");
    int result = -ENOENT;
    int size;

    if (strchr(name, '/') || name[0] == 0) {
        size = snprintf(ret_path, PROC_PATH_MAX, "%s", name);
        return size < PROC_PATH_MAX ? 0 : -ENAMETOOLONG;
    }
    if (!path)
        path = "/usr/bin:/bin";
    for (const char *end; path; path = *end ? end + 1 : NULL) {
        end = strchrnul(path, ':');
        if (end == path) /* an empty entry is the current directory */
            size = snprintf(ret_path, PROC_PATH_MAX, "./%s", name);
        else
            size = snprintf(ret_path, PROC_PATH_MAX, "%.*s/%s", (int)(end - path), path, name);
        if (size >= PROC_PATH_MAX)
            continue;
        if (access(ret_path, X_OK) == 0)
            return 0;
        if (errno == EACCES)
            result = -EACCES;
    }
    return result;
}

static int spec_check(const struct proc_spec *spec, int *ret_lowest_free_fd)
{
    int highest = 2;

    if (!spec->program || !spec->argv || spec->fd_count > CHILD_FD_MAX)
        return -EINVAL;
    for (size_t i = 0; i < spec->fd_count; i++) {
        if (spec->fds[i].fd < 0 || spec->fds[i].target < 0)
            return -EBADF;
        if (spec->fds[i].target > highest)
            highest = spec->fds[i].target;
    }
    *ret_lowest_free_fd = highest + 1;
    return 0;
}

int proc_child_prepare(const struct proc_spec *spec, pid_t parent)
{
    struct child child = { .spec = spec, .parent = parent, .program_fd = -1 };
    int result = spec_check(spec, &child.lowest_free_fd);

    if (result < 0)
        return result;
    return child_prepare(&child) < 0 ? -errno : 0;
}

/* The thread sanitizer follows a clone as a fork: with memory of its own. */
#if defined(__SANITIZE_THREAD__)
#define CHILD_BORROWS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILD_BORROWS_MEMORY 0
#endif
#endif
#ifndef CHILD_BORROWS_MEMORY
#define CHILD_BORROWS_MEMORY 1
#endif

/* Clones with all signals blocked: no handler of ours may run on the child's side. */
static int child_clone(struct child *child, void *stack_top, pid_t *ret_pid, int *ret_pidfd)
{
    int flags = CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
    int cancel_state, error;
    sigset_t all, before;
    pid_t pid;

    if (!child->spec->before_exec && CHILD_BORROWS_MEMORY)
        flags |= CLONE_VM;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    pid = clone(child_main, stack_top, flags, child, ret_pidfd);
    error = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_setcancelstate(cancel_state, NULL);
    *ret_pid = pid;
    return pid < 0 ? -error : 0;
}

static int child_start(struct child *child, void *stack_top, pid_t *ret_pid, int *ret_pidfd)
{
    _cleanup_close_ int pidfd = -1;
    pid_t pid;
    int result = child_clone(child, stack_top, &pid, &pidfd);

    if (result < 0)
        return result;
    if (child->error < 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return child->error;
    }
    *ret_pid = pid;
    *ret_pidfd = take_fd(&pidfd);
    return 0;
}

int proc_spawn(const struct proc_spec *spec, pid_t *ret_pid, int *ret_pidfd)
{
    const size_t mapping_size = CHILD_GUARD_BYTES + CHILD_STACK_BYTES;
    char program[PROC_PATH_MAX];
    struct child *child;
    int lowest_free_fd;
    uint8_t *mapping;
    int result = spec_check(spec, &lowest_free_fd);

    if (result == 0)
        result = proc_find(spec->program, program);
    if (result < 0)
        return result;
    mapping = mmap(NULL, mapping_size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED)
        return -errno;
    child = (struct child *)(void *)(mapping + mapping_size - CHILD_RECORD_BYTES);
    *child = (struct child){
        .program_fd = -1,
        .spec = spec,
        .program = program,
        .environment = (char *const *)(spec->environment ? (void *)spec->environment : environ),
        .parent = getpid(),
        .lowest_free_fd = lowest_free_fd,
    };
    result = mprotect(mapping, CHILD_GUARD_BYTES, PROT_NONE) < 0
                 ? -errno
                 : child_start(child, child, ret_pid, ret_pidfd);
    (void)munmap(mapping, mapping_size);
    return result;
}

int proc_pidfd_open(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    return pidfd < 0 ? -errno : pidfd;
}

int proc_pidfd_signal(int pidfd, int signal_number)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0) < 0 ? -errno : 0;
}

int proc_hold_standard_fds(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY); /* the lowest that is free */
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return -errno;
    closep(&fd);
    return 0;
}

const char *proc_self_directory(void)
{
    static char directory[PROC_PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
    char *slash;

    if (size < 0)
        return NULL;
    directory[size] = 0;
    slash = strrchr(directory, '/');
    if (!slash)
        return NULL;
    slash[slash == directory] = 0;
    return directory;
}
