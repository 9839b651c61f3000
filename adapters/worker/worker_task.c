/* worker_task.c - see worker_task.h. */
#include "worker_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "install_output.h"
#include "proc.h"
#include "process_tree.h"

#define SOURCE_TARGET 3
#define LOCK_TARGET 4

struct worker_task {
    worker_task_done_fn done;
    void *ctx;
    pid_t pid;
    struct loop_child *child; /* NULL: reaped */
    int errors_fd;
    struct loop_io *io;
    struct install_errors errors;
};

void worker_task_free(struct worker_task *task)
{
    if (!task)
        return;
    if (task->child)
        process_tree_kill(task->pid);
    loop_child_free(task->child);
    loop_io_free(task->io);
    closep(&task->errors_fd);
    install_errors_done(&task->errors);
    free(task);
}

static void on_errors(void *ctx, uint32_t events)
{
    struct worker_task *task = ctx;
    char data[4096];
    ssize_t size = read(task->errors_fd, data, sizeof(data));

    if (size > 0)
        install_errors_take(&task->errors, data, (size_t)size);
    else if (size == 0 || (errno != EAGAIN && errno != EINTR))
        loop_io_free(take_ptr(task->io));
}

static void on_ended(void *ctx, int wait_status)
{
    struct worker_task *task = ctx;

    loop_child_free(take_ptr(task->child));
    for (int i = 0; task->io && i < 16; i++) /* the pipe's 64 KiB */
        on_errors(task, EPOLLIN);
    task->done(task->ctx, WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1,
               install_errors_text(&task->errors));
    worker_task_free(task);
}

static int task_spawn(struct worker_task *task, struct loop *loop,
                      const struct worker_task_spec *spec, int their_fd)
{
    const char *argv[WORKER_TASK_WORDS_MAX + 2] = { spec->program };
    struct proc_fd fds[3] = { { their_fd, 2 }, { spec->lock_fd, LOCK_TARGET } };
    size_t fd_count = 2;

    for (size_t i = 0; i < WORKER_TASK_WORDS_MAX && spec->words[i]; i++)
        argv[i + 1] = spec->words[i];
    if (spec->source_fd >= 0)
        fds[fd_count++] = (struct proc_fd){ spec->source_fd, SOURCE_TARGET };
    return loop_spawn(loop,
                      &(struct proc_spec){ .program = spec->program,
                                           .argv = argv,
                                           .workdir = "/",
                                           .fds = fds,
                                           .fd_count = fd_count,
                                           .new_session = true,
                                           .die_with_parent = true },
                      on_ended, task, &task->pid, &task->child);
}

int worker_task_start(struct loop *loop, const struct worker_task_spec *spec,
                      worker_task_done_fn done, void *ctx, struct worker_task **ret_task)
{
    struct worker_task *task = calloc(1, sizeof(*task));
    _cleanup_close_ int their_fd = -1;
    int pipe_fds[2], result;

    if (!task)
        return -ENOMEM;
    *task = (struct worker_task){ .done = done, .ctx = ctx, .errors_fd = -1 };
    result = pipe2(pipe_fds, O_CLOEXEC) < 0 ? -errno : 0;
    if (result == 0) {
        task->errors_fd = pipe_fds[0];
        their_fd = pipe_fds[1];
        result = fcntl(task->errors_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    }
    if (result == 0)
        result = loop_io_new(loop, task->errors_fd, EPOLLIN, on_errors, task, &task->io);
    if (result == 0)
        result = task_spawn(task, loop, spec, their_fd);
    if (result < 0) {
        worker_task_free(task);
        return result;
    }
    *ret_task = task;
    return 0;
}
