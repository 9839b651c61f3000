/* install_child.c - see install_child.h. */
#include "install_child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

#include "proc.h"
#include "process_tree.h"

#define PIPE_DRAIN_READS_MAX 64 /* a pipe holds no more, unless somebody still writes */

static void take_output(struct install_child *child, const char *data, size_t size)
{
    install_output_take(&child->output, data, size);
}

static void take_errors(struct install_child *child, const char *data, size_t size)
{
    install_errors_take(&child->errors, data, size);
}

void install_child_init(struct install_child *child, struct loop *loop,
                        void (*ended)(void *ctx, int wait_status), void *ctx)
{
    *child = (struct install_child){ .loop = loop, .ended = ended, .ctx = ctx };
    child->output_pipe = (struct install_pipe){ child, -1, NULL, take_output };
    child->errors_pipe = (struct install_pipe){ child, -1, NULL, take_errors };
}

/* Pipes. */

static void pipe_close(struct install_pipe *end)
{
    loop_io_free(take_ptr(end->io));
    closep(&end->fd);
}

static void on_pipe(void *ctx, uint32_t events)
{
    struct install_pipe *end = ctx;
    char data[16384];
    ssize_t size = read(end->fd, data, sizeof(data));

    if (size > 0)
        end->take(end->owner, data, (size_t)size);
    else if (size == 0 || (errno != EAGAIN && errno != EINTR))
        pipe_close(end);
}

/* What is in the pipe still; a grandchild may hold it open, so its end is not waited for. */
static void pipe_drain(struct install_pipe *end)
{
    for (int i = 0; end->fd >= 0 && i < PIPE_DRAIN_READS_MAX; i++) {
        char data[16384];
        ssize_t size = read(end->fd, data, sizeof(data));

        if (size <= 0)
            break;
        end->take(end->owner, data, (size_t)size);
    }
    pipe_close(end);
}

static int pipe_open(struct install_pipe *end, int *ret_theirs)
{
    int pipe_fds[2];

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    end->fd = pipe_fds[0];
    *ret_theirs = pipe_fds[1];
    if (fcntl(end->fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return loop_io_new(end->owner->loop, end->fd, EPOLLIN, on_pipe, end, &end->io);
}

/* The process. */

static void on_child_ended(void *ctx, int wait_status)
{
    struct install_child *child = ctx;

    loop_child_free(take_ptr(child->child));
    pipe_drain(&child->output_pipe);
    pipe_drain(&child->errors_pipe);
    child->ended(child->ctx, wait_status);
}

/* What an earlier child said is forgotten. */
static void forget(struct install_child *child)
{
    install_output_done(&child->output);
    install_errors_done(&child->errors);
    child->output.done = child->output.line_too_long = false;
}

int install_child_start(struct install_child *child, const char *const *argv, bool reports)
{
    _cleanup_close_ int output_fd = -1, errors_fd = -1;
    int ret = pipe_open(&child->errors_pipe, &errors_fd);

    forget(child);
    if (ret == 0 && reports)
        ret = pipe_open(&child->output_pipe, &output_fd);
    if (ret == 0) {
        const struct proc_fd fds[] = { { reports ? output_fd : errors_fd, 1 },
                                       { errors_fd, 2 } };

        ret = loop_spawn(child->loop,
                         &(struct proc_spec){ .program = argv[0],
                                              .argv = argv,
                                              .fds = fds,
                                              .fd_count = ARRAY_SIZE(fds),
                                              .new_session = true,
                                              .die_with_parent = true },
                         on_child_ended, child, &child->pid, &child->child);
    }
    if (ret < 0) {
        pipe_close(&child->output_pipe);
        pipe_close(&child->errors_pipe);
    }
    return ret;
}

bool install_child_runs(const struct install_child *child)
{
    return child->child != NULL;
}

void install_child_kill(struct install_child *child)
{
    pipe_close(&child->output_pipe);
    pipe_close(&child->errors_pipe);
    if (child->child)
        process_tree_kill(child->pid);
}

void install_child_done(struct install_child *child)
{
    install_child_kill(child);
    loop_child_free(take_ptr(child->child));
    forget(child);
}
