/* loop_process.c - signals (signalfd) and children (pidfd) as descriptors of the loop. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "loop.h"
#include "loop_state.h"
#include "proc.h"

struct loop_signal {
    struct loop *loop;
    struct list node; /* in loop->signals */
    struct loop_io *io;
    int fd;
    int number;
    loop_signal_fn fn;
    void *ctx;
};

struct loop_child {
    struct loop_io *io;
    int pidfd; /* -1 after its end */
    loop_child_fn fn;
    void *ctx;
};

/* One signal an event: the descriptor stays readable while there are more. */
static void signal_readable(void *ctx, uint32_t events)
{
    struct loop_signal *source = ctx;
    struct signalfd_siginfo info;

    if (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        source->fn(source->ctx, source->number);
}

static bool signal_taken(const struct loop *loop, int number)
{
    LIST_FOREACH(node, &loop->signals)
    {
        if (LIST_ENTRY(node, struct loop_signal, node)->number == number)
            return true;
    }
    return false;
}

int loop_signal_new(struct loop *loop, int signal_number, loop_signal_fn fn, void *ctx,
                    struct loop_signal **ret_signal)
{
    _cleanup_(loop_signal_freep)
    struct loop_signal *source = NULL;
    sigset_t set;
    int result;

    if (signal_taken(loop, signal_number))
        return -EBUSY;
    if (sigemptyset(&set) < 0 || sigaddset(&set, signal_number) < 0)
        return -errno;
    source = calloc(1, sizeof(*source));
    if (!source)
        return -ENOMEM;
    *source = (struct loop_signal){
        .loop = loop, .fd = -1, .number = signal_number, .fn = fn, .ctx = ctx
    };
    list_init(&source->node);
    result = -pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (result < 0)
        return result;
    source->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (source->fd < 0)
        return -errno;
    result = loop_io_new(loop, source->fd, EPOLLIN, signal_readable, source, &source->io);
    if (result < 0)
        return result;
    list_append(&loop->signals, &source->node);
    *ret_signal = take_ptr(source);
    return 0;
}

void loop_signal_free(struct loop_signal *source)
{
    if (!source)
        return;
    list_remove(&source->node);
    loop_io_free(source->io);
    closep(&source->fd);
    free(source);
}

/* The wait status as wait(2) encodes it. */
static int wait_status_of(const siginfo_t *info)
{
    switch (info->si_code) {
    case CLD_EXITED:
        return W_EXITCODE(info->si_status & 0xff, 0);
    case CLD_DUMPED:
        return W_EXITCODE(0, info->si_status) | WCOREFLAG;
    default:
        return W_EXITCODE(0, info->si_status);
    }
}

static void child_ended(void *ctx, uint32_t events)
{
    struct loop_child *child = ctx;
    siginfo_t info = { 0 };
    int wait_status = LOOP_CHILD_STATUS_UNKNOWN;

    if (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG) == 0) {
        if (info.si_pid == 0)
            return; /* not yet */
        wait_status = wait_status_of(&info);
    } else if (errno == EINTR) {
        return; /* still readable */
    }
    loop_io_free(take_ptr(child->io));
    closep(&child->pidfd);
    child->fn(child->ctx, wait_status);
}

int loop_child_new(struct loop *loop, pid_t pid, int own_pidfd, loop_child_fn fn, void *ctx,
                   struct loop_child **ret_child)
{
    _cleanup_close_ int pidfd = own_pidfd;
    struct loop_child *child = calloc(1, sizeof(*child));
    int result;

    if (!child)
        return -ENOMEM;
    *child = (struct loop_child){ .pidfd = pidfd, .fn = fn, .ctx = ctx };
    result = loop_io_new(loop, pidfd, EPOLLIN, child_ended, child, &child->io);
    if (result < 0) {
        free(child);
        return result;
    }
    (void)take_fd(&pidfd); /* the child's now */
    *ret_child = child;
    return 0;
}

int loop_spawn(struct loop *loop, const struct proc_spec *spec, loop_child_fn fn, void *ctx,
               pid_t *ret_pid, struct loop_child **ret_child)
{
    pid_t pid;
    int pidfd, result = proc_spawn(spec, &pid, &pidfd);

    if (result < 0)
        return result;
    result = loop_child_new(loop, pid, pidfd, fn, ctx, ret_child);
    if (result < 0) { /* nobody would notice its end */
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return result;
    }
    if (ret_pid)
        *ret_pid = pid;
    return 0;
}

int loop_child_kill(struct loop_child *child, int signal_number)
{
    if (child->pidfd < 0)
        return -ESRCH;
    return proc_pidfd_signal(child->pidfd, signal_number);
}

void loop_child_free(struct loop_child *child)
{
    if (!child)
        return;
    loop_io_free(child->io);
    closep(&child->pidfd);
    free(child);
}
