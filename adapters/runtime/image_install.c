/* image_install.c - see image_install.h.
 *
 * Each step is a child process whose end begins the next one, so that nothing here waits: flock
 * for the lock of another process, the installer, sync(1) for the disk, rm(1) for what is left
 * of a failure. */
#include "image_install.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "codec.h"
#include "image_file.h"
#include "image_remove.h"
#include "install_output.h"
#include "log.h"
#include "proc.h"
#include "process_tree.h"

#define PROGRESS_INTERVAL_MS 100 /* between two reports of one stage */
#define PIPE_DRAIN_READS_MAX 64  /* a pipe holds no more, unless somebody still writes */

enum install_state {
    INSTALL_LOCKING,    /* the lock is tried, or waited for */
    INSTALL_RUNNING,    /* the installer is at work in `temporary` */
    INSTALL_SYNCING,    /* it is complete; on its way to the disk */
    INSTALL_PUBLISHING, /* renamed; the folder above on its way to the disk */
    INSTALL_CLEANING,   /* failed or abandoned, nobody listens; the remains are taken away */
    INSTALL_STATE_MAX
};

static const bool install_moves[INSTALL_STATE_MAX][INSTALL_STATE_MAX] = {
    [INSTALL_LOCKING] = { [INSTALL_RUNNING] = true, [INSTALL_CLEANING] = true },
    [INSTALL_RUNNING] = { [INSTALL_SYNCING] = true, [INSTALL_CLEANING] = true },
    [INSTALL_SYNCING] = { [INSTALL_PUBLISHING] = true, [INSTALL_CLEANING] = true },
    [INSTALL_PUBLISHING] = { [INSTALL_CLEANING] = true },
};

/* One of the installer's pipes. */
struct pipe_end {
    struct image_install *install;
    int fd;
    struct loop_io *io;
    void (*take)(struct image_install *install, const char *data, size_t size);
};

struct image_install {
    struct list node; /* in jobs->installs */
    struct image_jobs *jobs;
    struct loop *loop;
    enum install_state state;
    const struct image_install_events *events; /* NULL: nobody listens any more */
    void *ctx;
    struct loop_notice begin; /* deferred: the first step */
    struct loop_notice over;  /* deferred: nothing is left but this object */
    struct loop_timer *timer;
    uint32_t timeout_ms;

    char *installer, *image, *source_text, *kind, *source, *addition, *architecture;
    bool insecure;
    char *images_directory, *digest, *directory, *lock_path;
    char *temporary; /* NULL: none */
    int lock_fd;

    pid_t child_pid;
    struct loop_child *child; /* of the present step */
    struct pipe_end output_pipe;
    struct pipe_end errors_pipe;
    struct install_output output; /* progress */
    struct install_errors errors; /* the reason of a failure */

    enum image_stage stage; /* the last one that was reported */
    uint64_t reported_ms;
    char step[INSTALL_STAGE_MAX];
};

static void install_set_state(struct image_install *install, enum install_state state)
{
    assert(install_moves[install->state][state]);
    install->state = state;
}

/* Life. */

static void pipe_close(struct pipe_end *end)
{
    loop_io_free(take_ptr(end->io));
    closep(&end->fd);
}

static void install_free(struct image_install *install)
{
    list_remove(&install->node);
    loop_notice_cancel(install->loop, &install->begin);
    loop_notice_cancel(install->loop, &install->over);
    loop_timer_free(install->timer);
    loop_child_free(install->child);
    pipe_close(&install->output_pipe);
    pipe_close(&install->errors_pipe);
    closep(&install->lock_fd); /* gives the lock back */
    install_output_done(&install->output);
    install_errors_done(&install->errors);
    free(install->installer);
    free(install->image);
    free(install->source_text);
    free(install->kind);
    free(install->source);
    free(install->addition);
    free(install->architecture);
    free(install->images_directory);
    free(install->digest);
    free(install->directory);
    free(install->lock_path);
    free(install->temporary);
    free(install);
}

/* Cleaning: the lock is held until the remains are gone. */

static void on_cleaned(void *ctx)
{
    install_free(ctx);
}

static void install_remove_temporary(struct image_install *install)
{
    const char *const paths[] = { install->temporary, NULL };

    if (install->temporary &&
        image_remove(install->loop, paths, &install->jobs->removals, on_cleaned, install) == 0)
        return;
    loop_defer(install->loop, &install->over); /* what is left is found at the next start */
}

static void install_clean(struct image_install *install)
{
    install_set_state(install, INSTALL_CLEANING);
    loop_timer_disarm(install->timer);
    loop_notice_cancel(install->loop, &install->begin);
    pipe_close(&install->output_pipe);
    pipe_close(&install->errors_pipe);
    if (install->child)
        process_tree_kill(install->child_pid); /* its end goes on with the removal */
    else
        install_remove_temporary(install);
}

static _printf_(2, 3) void install_fail(struct image_install *install, const char *format, ...)
{
    const struct image_install_events *events = take_ptr(install->events);
    void *ctx = install->ctx;
    struct image_install_failure failure;
    va_list arguments;

    (void)snprintf(failure.step, sizeof(failure.step), "%s", install->step);
    va_start(arguments, format);
    (void)vsnprintf(failure.cause, sizeof(failure.cause), format, arguments); /* cut is fine */
    va_end(arguments);
    log_event(LOG_WARN, "image_install_failed", log_text("image", install->image),
              log_text("source", install->source_text), log_text("step", failure.step),
              log_text("cause", failure.cause));
    install_clean(install);
    if (events)
        events->ended(ctx, &failure);
}

static void install_succeed(struct image_install *install)
{
    const struct image_install_events *events = install->events;
    void *ctx = install->ctx;

    install_free(install);
    events->ended(ctx, NULL);
}

void image_install_abandon(struct image_install *install)
{
    log_event(LOG_INFO, "image_install_abandoned", log_text("image", install->image));
    install->events = NULL;
    install_clean(install);
}

void image_jobs_kill(struct image_jobs *jobs)
{
    LIST_FOREACH(node, &jobs->installs)
    {
        struct image_install *install = LIST_ENTRY(node, struct image_install, node);

        if (install->child)
            process_tree_kill(install->child_pid);
        install_free(install);
    }
    image_removals_kill(&jobs->removals);
}

/* Child processes. */

static void install_step_ended(struct image_install *install, int wait_status);

static void on_child_ended(void *ctx, int wait_status)
{
    struct image_install *install = ctx;

    loop_child_free(take_ptr(install->child));
    install_step_ended(install, wait_status);
}

static int install_spawn(struct image_install *install, const char *const *argv,
                         const struct proc_fd *fds, size_t fd_count)
{
    int pidfd;
    int ret = proc_spawn(&(struct proc_spec){ .program = argv[0],
                                              .argv = argv,
                                              .fds = fds,
                                              .fd_count = fd_count,
                                              .new_session = true,
                                              .die_with_parent = true },
                         &install->child_pid, &pidfd);

    if (ret == 0)
        ret = loop_child_new(install->loop, install->child_pid, pidfd, on_child_ended, install,
                             &install->child);
    if (ret < 0)
        install_fail(install, "%s cannot be started: %s", argv[0], strerror(-ret));
    return ret;
}

/* What the installer says. */

static void on_progress(void *ctx, const char *stage, uint64_t bytes, uint64_t total_bytes)
{
    static const char *const stages[] = { "pulling", "unpacking" };
    static_assert(ARRAY_SIZE(stages) == IMAGE_STAGE_MAX, "a word for each stage");
    struct image_install *install = ctx;
    uint64_t now_ms = loop_now_ms(install->loop);
    int found = -1;

    (void)snprintf(install->step, sizeof(install->step), "%s", stage);
    for (int i = 0; i < IMAGE_STAGE_MAX; i++)
        if (strcmp(stages[i], stage) == 0)
            found = i;
    if (found < (int)install->stage) /* unknown, or backwards (contract 5.1.3) */
        return;
    if (!install->events) /* an earlier line's callback abandoned it */
        return;
    if (install->reported_ms && found == (int)install->stage &&
        now_ms - install->reported_ms < PROGRESS_INTERVAL_MS)
        return;
    install->stage = (enum image_stage)found;
    install->reported_ms = now_ms;
    install->events->progress(install->ctx, install->stage, bytes, total_bytes);
}

static void install_take_output(struct image_install *install, const char *data, size_t size)
{
    install_output_take(&install->output, data, size);
}

static void install_take_errors(struct image_install *install, const char *data, size_t size)
{
    install_errors_take(&install->errors, data, size);
}

static void on_pipe(void *ctx, uint32_t events)
{
    struct pipe_end *end = ctx;
    char data[16384];
    ssize_t size = read(end->fd, data, sizeof(data));

    if (size > 0)
        end->take(end->install, data, (size_t)size);
    else if (size == 0 || (errno != EAGAIN && errno != EINTR))
        pipe_close(end);
}

/* What is in the pipe still; a grandchild may hold it open, so its end is not waited for. */
static void pipe_drain(struct pipe_end *end)
{
    for (int i = 0; end->fd >= 0 && i < PIPE_DRAIN_READS_MAX; i++) {
        char data[16384];
        ssize_t size = read(end->fd, data, sizeof(data));

        if (size <= 0)
            break;
        end->take(end->install, data, (size_t)size);
    }
    pipe_close(end);
}

static int pipe_open(struct pipe_end *end, int *ret_theirs)
{
    int pipe_fds[2];

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    end->fd = pipe_fds[0];
    *ret_theirs = pipe_fds[1];
    if (fcntl(end->fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return loop_io_new(end->install->loop, end->fd, EPOLLIN, on_pipe, end, &end->io);
}

/* The steps. */

static void install_run(struct image_install *install)
{
    _cleanup_close_ int output_fd = -1, errors_fd = -1;
    const char *argv[16] = { install->installer, "--source",    install->source,
                             "--kind",           install->kind, "--dir",
                             install->temporary, "--arch",      install->architecture };
    size_t count = 9;
    int ret = pipe_open(&install->output_pipe, &output_fd);

    if (ret == 0)
        ret = pipe_open(&install->errors_pipe, &errors_fd);
    if (ret < 0) {
        install_fail(install, "%s", strerror(-ret));
        return;
    }
    if (install->insecure)
        argv[count++] = "--insecure";
    if (install->addition) {
        argv[count++] = "--with";
        argv[count++] = install->addition;
    }
    const struct proc_fd fds[] = { { output_fd, 1 }, { errors_fd, 2 } };

    (void)install_spawn(install, argv, fds, ARRAY_SIZE(fds)); /* a failure has ended it */
}

static void install_locked(struct image_install *install)
{
    struct image image = { 0 };
    int ret = image_file_read(install->directory, &image);

    if (ret == 0) { /* another process was quicker */
        free(image.name);
        free(image.workdir);
        text_list_done(&image.env);
        install_succeed(install);
        return;
    }
    (void)snprintf(install->step, sizeof(install->step), "start");
    /* Leftovers take room, but stop nobody. */
    (void)image_remove_leftovers(install->loop, install->images_directory, install->digest,
                                 &install->jobs->removals);
    if (asprintf(&install->temporary, "%s" IMAGE_TEMPORARY_MARK "XXXXXX", install->directory) <
        0) {
        install->temporary = NULL;
        install_fail(install, "%s", strerror(ENOMEM));
        return;
    }
    if (!mkdtemp(install->temporary)) {
        install_fail(install, "%s: %s", install->temporary, strerror(errno));
        return;
    }
    install_set_state(install, INSTALL_RUNNING);
    log_event(LOG_INFO, "image_install_begun", log_text("image", install->image),
              log_text("source", install->source_text), log_text("digest", install->digest));
    install_run(install);
}

static void install_try_lock(struct image_install *install)
{
    const char *const argv[] = { "flock", "--exclusive", install->lock_path, "true", NULL };

    closep(&install->lock_fd);
    install->lock_fd = open(install->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                            0600);
    if (install->lock_fd < 0)
        install_fail(install, "%s: %s", install->lock_path, strerror(errno));
    else if (flock(install->lock_fd, LOCK_EX | LOCK_NB) == 0)
        install_locked(install);
    else if (errno == EWOULDBLOCK)
        (void)install_spawn(install, argv, NULL, 0); /* ends when the lock was free */
    else
        install_fail(install, "%s: %s", install->lock_path, strerror(errno));
}

static void on_begin(void *ctx)
{
    install_try_lock(ctx);
}

/* Words for a wait status that is no success. */
static const char *describe_status(int wait_status, char *text, size_t size)
{
    if (WIFSIGNALED(wait_status))
        (void)snprintf(text, size, "the installer was killed by signal %d",
                       WTERMSIG(wait_status));
    else if (WEXITSTATUS(wait_status) != 0)
        (void)snprintf(text, size, "the installer exited with %d", WEXITSTATUS(wait_status));
    else
        (void)snprintf(text, size, "the installer ended without `done`");
    return text;
}

static void install_installed(struct image_install *install, int wait_status)
{
    const char *const argv[] = { "sync", "--file-system", install->temporary, NULL };
    char why[IMAGE_WHY_MAX];

    pipe_drain(&install->output_pipe);
    pipe_drain(&install->errors_pipe);
    if (install->state != INSTALL_RUNNING)
        return; /* a callback abandoned it */
    if (wait_status != 0 || !install->output.done) {
        const char *errors = install_errors_text(&install->errors);

        describe_status(wait_status, why, sizeof(why));
        install_fail(install, "%s%s%s", why, *errors ? ": " : "", errors);
        return;
    }
    (void)snprintf(install->step, sizeof(install->step), "finish");
    if (image_file_write(install->temporary, install->image, install->source_text, why) < 0) {
        install_fail(install, "%s", why);
        return;
    }
    install_set_state(install, INSTALL_SYNCING);
    (void)install_spawn(install, argv, NULL, 0);
}

/* A folder of that name that is no image is put aside; the next install removes it. */
static int put_aside(const struct image_install *install)
{
    _cleanup_free_ char *aside = NULL;

    if (asprintf(&aside, "%s" IMAGE_TEMPORARY_MARK "broken-%d", install->directory,
                 (int)getpid()) < 0) {
        aside = NULL;
        return -ENOMEM;
    }
    return rename(install->directory, aside) < 0 ? -errno : 0;
}

static void install_synced(struct image_install *install)
{
    const char *const argv[] = { "sync", install->images_directory, NULL };
    int ret = rename(install->temporary, install->directory) < 0 ? -errno : 0;

    if (ret == -ENOTEMPTY || ret == -EEXIST || ret == -ENOTDIR) {
        ret = put_aside(install);
        if (ret == 0 && rename(install->temporary, install->directory) < 0)
            ret = -errno;
    }
    if (ret < 0) {
        install_fail(install, "%s: %s", install->directory, strerror(-ret));
        return;
    }
    free(take_ptr(install->temporary));
    install_set_state(install, INSTALL_PUBLISHING);
    log_event(LOG_INFO, "image_installed", log_text("image", install->image),
              log_text("digest", install->digest));
    (void)install_spawn(install, argv, NULL, 0);
}

static void install_step_ended(struct image_install *install, int wait_status)
{
    switch (install->state) {
    case INSTALL_LOCKING:
        if (wait_status == 0)
            install_try_lock(install);
        else
            install_fail(install, "%s cannot be locked", install->lock_path);
        break;
    case INSTALL_RUNNING:
        install_installed(install, wait_status);
        break;
    case INSTALL_SYNCING:
        if (wait_status == 0)
            install_synced(install);
        else
            install_fail(install, "%s cannot be synced to disk", install->temporary);
        break;
    case INSTALL_PUBLISHING:
        install_succeed(install); /* it is there, whether the folder is on disk or not */
        break;
    default:
        install_remove_temporary(install);
        break;
    }
}

static void on_timeout(void *ctx)
{
    struct image_install *install = ctx;

    install_fail(install, "not finished after pull_timeout_ms %u", install->timeout_ms);
}

/* Birth. */

static int install_copy(struct image_install *install, const struct image_install_spec *spec)
{
    _cleanup_(buf_done)
    struct buf source = { 0 };
    int ret = source_format(spec->source, &source);

    if (ret < 0 || !buf_text(&source))
        return -ENOMEM;
    install->source = (char *)buf_take(&source, NULL);
    install->installer = strdup(spec->installer);
    install->image = strdup(spec->image);
    install->source_text = strdup(spec->source_text);
    install->kind = strdup(source_kind_name(spec->source->kind));
    install->addition = spec->addition ? strdup(spec->addition) : NULL;
    install->architecture = strdup(spec->architecture);
    install->images_directory = strdup(spec->images_directory);
    install->digest = strdup(spec->digest);
    install->insecure = spec->source->insecure;
    install->timeout_ms = spec->timeout_ms;
    if (asprintf(&install->directory, "%s/%s", spec->images_directory, spec->digest) < 0)
        install->directory = NULL;
    if (asprintf(&install->lock_path, "%s/%s.lock", spec->images_directory, spec->digest) < 0)
        install->lock_path = NULL;
    return install->source && install->installer && install->image && install->source_text &&
                   install->kind && (!spec->addition || install->addition) &&
                   install->architecture && install->images_directory && install->digest &&
                   install->directory && install->lock_path
               ? 0
               : -ENOMEM;
}

int image_install_begin(struct loop *loop, const struct image_install_spec *spec,
                        struct image_jobs *jobs, const struct image_install_events *events,
                        void *ctx, struct image_install **ret_install)
{
    struct image_install *install = calloc(1, sizeof(*install));
    int ret;

    if (!install)
        return -ENOMEM;
    *install = (struct image_install){
        .loop = loop, .jobs = jobs, .events = events, .ctx = ctx, .lock_fd = -1, .step = "lock"
    };
    install->output_pipe = (struct pipe_end){ install, -1, NULL, install_take_output };
    install->errors_pipe = (struct pipe_end){ install, -1, NULL, install_take_errors };
    install->output.progress = on_progress;
    install->output.ctx = install;
    list_init(&install->node);
    loop_notice_init(&install->begin, on_begin, install);
    loop_notice_init(&install->over, on_cleaned, install);
    ret = install_copy(install, spec);
    if (ret == 0)
        ret = loop_timer_new(loop, on_timeout, install, &install->timer);
    if (ret < 0) {
        install_free(install);
        return ret;
    }
    list_append(&jobs->installs, &install->node);
    loop_timer_arm(install->timer, install->timeout_ms);
    loop_defer(loop, &install->begin);
    *ret_install = install;
    return 0;
}
