/* image_install.c - see image_install.h.
 *
 * Each step is a child process whose end begins the next one, so that nothing here waits: flock
 * for the lock of another process, sha256sum for the digests, the installer, sync(1) for the
 * disk, rm(1) for what is left of a failure. */
#include "image_install.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "codec.h"
#include "image_file.h"
#include "image_lock.h"
#include "image_remove.h"
#include "image_seal.h"
#include "install_child.h"
#include "install_plan.h"
#include "install_rate.h"
#include "install_stall.h"
#include "log.h"

#define IDENTITY_MAX_BYTES (64u * 1024)

enum install_state {
    INSTALL_LOCKING,    /* the lock is tried, or waited for */
    INSTALL_CHECKING,   /* something is there; its digests are compared */
    INSTALL_RUNNING,    /* the installer is at work in `temporary` */
    INSTALL_SEALING,    /* it is complete; its digests are made */
    INSTALL_SYNCING,    /* on its way to the disk */
    INSTALL_PUBLISHING, /* renamed; the folder above on its way to the disk */
    INSTALL_CLEANING,   /* failed or abandoned, nobody listens; the remains are taken away */
    INSTALL_STATE_MAX
};

static const bool install_moves[INSTALL_STATE_MAX][INSTALL_STATE_MAX] = {
    [INSTALL_LOCKING] = { [INSTALL_CHECKING] = true,
                          [INSTALL_RUNNING] = true,
                          [INSTALL_CLEANING] = true },
    [INSTALL_CHECKING] = { [INSTALL_RUNNING] = true, [INSTALL_CLEANING] = true },
    [INSTALL_RUNNING] = { [INSTALL_SEALING] = true, [INSTALL_CLEANING] = true },
    [INSTALL_SEALING] = { [INSTALL_SYNCING] = true, [INSTALL_CLEANING] = true },
    [INSTALL_SYNCING] = { [INSTALL_PUBLISHING] = true, [INSTALL_CLEANING] = true },
    [INSTALL_PUBLISHING] = { [INSTALL_CLEANING] = true },
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
    struct install_stall stall;

    struct install_plan plan;
    char *temporary; /* NULL: none */
    int lock_fd;     /* -1: not had yet */

    struct install_child child; /* of the present step */
    struct buf identity;        /* of what is checked */
    struct install_rate rate;
    char step[INSTALL_STAGE_MAX];
};

static void install_set_state(struct image_install *install, enum install_state state)
{
    assert(install_moves[install->state][state]);
    install->state = state;
}

static void install_set_step(struct image_install *install, const char *step)
{
    (void)snprintf(install->step, sizeof(install->step), "%s", step); /* cut is fine */
}

/* Life. */

static void install_free(struct image_install *install)
{
    list_remove(&install->node);
    loop_notice_cancel(install->loop, &install->begin);
    loop_notice_cancel(install->loop, &install->over);
    loop_timer_free(install->timer);
    install_stall_done(&install->stall);
    install_child_done(&install->child);
    if (install->lock_fd >= 0)
        image_lock_give(install->plan.lock_path, install->plan.directory, install->lock_fd);
    buf_done(&install->identity);
    install_plan_done(&install->plan);
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
    const struct text_list paths = { .count = 1, .items = &install->temporary };

    if (install->temporary &&
        image_remove(install->loop, &paths, &install->jobs->removals, on_cleaned, install) == 0)
        return;
    loop_defer(install->loop, &install->over); /* what is left is found at the next start */
}

static void install_clean(struct image_install *install)
{
    install_set_state(install, INSTALL_CLEANING);
    loop_timer_disarm(install->timer);
    install_stall_note(&install->stall, false, 0);
    loop_notice_cancel(install->loop, &install->begin);
    if (install_child_runs(&install->child))
        install_child_kill(&install->child); /* its end goes on with the removal */
    else
        install_remove_temporary(install);
}

static void install_end_badly(struct image_install *install,
                              const struct image_install_failure *failure)
{
    const struct image_install_events *events = take_ptr(install->events);
    void *ctx = install->ctx;

    log_event(LOG_WARN, "image_install_failed", log_text("image", install->plan.image),
              log_text("source", install->plan.source_text), log_text("step", failure->step),
              log_text("cause", failure->cause));
    install_clean(install);
    if (events)
        events->ended(ctx, false, failure);
}

static _printf_(2, 3) void install_fail(struct image_install *install, const char *format, ...)
{
    struct image_install_failure failure = { .missing = false };
    va_list arguments;

    (void)snprintf(failure.step, sizeof(failure.step), "%s", install->step);
    va_start(arguments, format);
    (void)vsnprintf(failure.cause, sizeof(failure.cause), format, arguments); /* cut is fine */
    va_end(arguments);
    install_end_badly(install, &failure);
}

/* What is there cannot be used, and nothing may be installed. CAUSE "": nothing is there. */
static void install_fail_missing(struct image_install *install, const char *cause)
{
    struct image_install_failure failure = { .missing = true };

    (void)snprintf(failure.step, sizeof(failure.step), "%s", install->step);
    (void)snprintf(failure.cause, sizeof(failure.cause), "%s", cause);
    install_end_badly(install, &failure);
}

static void install_succeed(struct image_install *install, bool installed)
{
    const struct image_install_events *events = install->events;
    void *ctx = install->ctx;

    install_free(install);
    events->ended(ctx, installed, NULL);
}

void image_install_permit(struct image_install *install)
{
    if (install->plan.source)
        install->plan.flags |= IMAGE_MAY_INSTALL;
}

void image_install_abandon(struct image_install *install)
{
    log_event(LOG_INFO, "image_install_abandoned", log_text("image", install->plan.image));
    install->events = NULL;
    install_clean(install);
}

void image_jobs_kill(struct image_jobs *jobs)
{
    LIST_FOREACH(node, &jobs->installs)
    install_free(LIST_ENTRY(node, struct image_install, node));
    image_removals_kill(&jobs->removals);
}

/* What is told. */

static void install_report(struct image_install *install, enum image_stage stage,
                           uint64_t bytes, uint64_t total_bytes)
{
    struct image_progress progress = { .stage = stage,
                                       .bytes = bytes,
                                       .total_bytes = total_bytes };

    if (!install->events) /* an earlier report's callback abandoned it */
        return;
    if (install_rate_take(&install->rate, loop_now_ms(install->loop), &progress))
        install->events->progress(install->ctx, &progress);
}

static void on_progress(void *ctx, const char *stage, uint64_t bytes, uint64_t total_bytes)
{
    struct image_install *install = ctx;

    install_set_step(install, stage);
    install_stall_note(&install->stall, strcmp(stage, image_stage_name(IMAGE_PULLING)) == 0,
                       bytes);
    for (int i = 0; i < IMAGE_STAGE_MAX; i++)
        if (strcmp(image_stage_name((enum image_stage)i), stage) == 0)
            install_report(install, (enum image_stage)i, bytes, total_bytes);
}

/* The steps. */

static void install_start(struct image_install *install, const char *const *argv, bool reports)
{
    int ret = install_child_start(&install->child, argv, reports);

    if (ret < 0)
        install_fail(install, "%s cannot be started: %s", argv[0], strerror(-ret));
}

static void install_run(struct image_install *install)
{
    const char *argv[INSTALL_ARGV_MAX];

    install_plan_argv(&install->plan, install->temporary, argv);
    install_start(install, argv, true);
}

/* The image is not there, or not as it should be: CAUSE. */
static void install_anew(struct image_install *install, const char *cause)
{
    if (!(install->plan.flags & IMAGE_MAY_INSTALL)) {
        install_fail_missing(install, cause);
        return;
    }
    install_set_step(install, "start");
    /* Leftovers take room, but stop nobody. */
    (void)image_remove_leftovers(install->loop, install->plan.images_directory,
                                 install->plan.digest, &install->jobs->removals);
    if (asprintf(&install->temporary, "%s" IMAGE_TEMPORARY_MARK "XXXXXX",
                 install->plan.directory) < 0) {
        install->temporary = NULL;
        install_fail(install, "%s", strerror(ENOMEM));
        return;
    }
    if (!mkdtemp(install->temporary)) {
        install_fail(install, "%s: %s", install->temporary, strerror(errno));
        free(take_ptr(install->temporary));
        return;
    }
    install_set_state(install, INSTALL_RUNNING);
    log_event(LOG_INFO, "image_install_begun", log_text("image", install->plan.image),
              log_text("source", install->plan.source_text),
              log_text("digest", install->plan.digest));
    install_run(install);
}

static void install_locked(struct image_install *install)
{
    const struct image_command check = image_check_command(install->plan.directory);
    struct image image = { 0 };
    int ret = install->plan.flags & IMAGE_ANEW
                  ? -ENOENT
                  : image_file_read(install->plan.directory, &image);

    if (ret < 0) {
        install_anew(install, ret == -ENOENT ? "" : IMAGE_FILE_NAME " is not as it should be");
        return;
    }
    image_done(&image);
    if (!(install->plan.flags & IMAGE_ALWAYS_CHECK) &&
        image_seal_holds(install->plan.directory)) {
        install_succeed(install, false); /* another process was quicker */
        return;
    }
    install_set_state(install, INSTALL_CHECKING);
    install_set_step(install, "check");
    if (image_seal_identity(install->plan.directory, &install->identity) < 0)
        install_anew(install, "its files cannot be read");
    else
        install_start(install, check.argv, false);
}

static void install_checked(struct image_install *install, int wait_status)
{
    const char *errors = install_errors_text(&install->child.errors);

    if (wait_status == 0) {
        /* Not written down: the next use reads it all again, no more. */
        (void)image_seal_accept(install->plan.directory, &install->identity);
        install_succeed(install, false);
        return;
    }
    image_seal_break(install->plan.directory);
    log_event(LOG_WARN, "image_damaged", log_text("image", install->plan.image),
              log_text("digest", install->plan.digest), log_text("cause", errors));
    install_anew(install, *errors ? errors : "its digests could not be compared");
}

static void install_try_lock(struct image_install *install)
{
    const char *const argv[] = { "flock", "--exclusive", install->plan.lock_path, "true",
                                 NULL };

    int fd = image_lock_take(install->plan.lock_path);

    if (fd >= 0) {
        install->lock_fd = fd;
        install_locked(install);
    } else if (fd == -EWOULDBLOCK) {
        install_start(install, argv, false); /* ends when the lock was free */
    } else {
        install_fail(install, "%s: %s", install->plan.lock_path, strerror(-fd));
    }
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
    const struct image_command seal = image_seal_command(install->temporary);
    char why[IMAGE_WHY_MAX];

    if (wait_status != 0 || !install->child.output.done) {
        const char *errors = install_errors_text(&install->child.errors);

        describe_status(wait_status, why, sizeof(why));
        install_fail(install, "%s%s%s", why, *errors ? ": " : "", errors);
        return;
    }
    install_set_step(install, "finish");
    if (image_file_write(install->temporary, install->plan.image, install->plan.source_text,
                         why) < 0) {
        install_fail(install, "%s", why);
        return;
    }
    install_set_state(install, INSTALL_SEALING);
    install_report(install, IMAGE_SEALING, 0, 0);
    if (install->state == INSTALL_SEALING) /* else that abandoned it */
        install_start(install, seal.argv, false);
}

static void install_sealed(struct image_install *install)
{
    const char *const argv[] = { "sync", "--file-system", install->temporary, NULL };
    int ret = image_seal_identity(install->temporary, &install->identity);

    if (ret == 0)
        ret = image_seal_accept(install->temporary, &install->identity);
    if (ret < 0) {
        install_fail(install, "%s: %s", install->temporary, strerror(-ret));
        return;
    }
    install_set_state(install, INSTALL_SYNCING);
    install_start(install, argv, false);
}

/* A folder of that name, that is no image or one of before, makes room. */
static int put_aside(struct image_install *install)
{
    _cleanup_free_ char *aside = NULL;
    int ret = image_move_aside(install->plan.directory, &aside);

    if (ret < 0)
        return ret;
    /* If it stays, it is found as a leftover. */
    (void)image_remove(install->loop, &(struct text_list){ .count = 1, .items = &aside },
                       &install->jobs->removals, NULL, NULL);
    return 0;
}

static void install_synced(struct image_install *install)
{
    const char *const argv[] = { "sync", install->plan.images_directory, NULL };
    int ret = rename(install->temporary, install->plan.directory) < 0 ? -errno : 0;

    if (ret == -ENOTEMPTY || ret == -EEXIST || ret == -ENOTDIR) {
        ret = put_aside(install);
        if (ret == 0 && rename(install->temporary, install->plan.directory) < 0)
            ret = -errno;
    }
    if (ret < 0) {
        install_fail(install, "%s: %s", install->plan.directory, strerror(-ret));
        return;
    }
    free(take_ptr(install->temporary));
    install_set_state(install, INSTALL_PUBLISHING);
    log_event(LOG_INFO, "image_installed", log_text("image", install->plan.image),
              log_text("digest", install->plan.digest));
    install_start(install, argv, false);
}

/* A step that has nothing but success and failure. */
static void install_go_on(struct image_install *install, int wait_status, const char *trouble,
                          void (*next)(struct image_install *install))
{
    const char *errors = install_errors_text(&install->child.errors);

    if (wait_status == 0)
        next(install);
    else
        install_fail(install, "%s %s%s%s", install->temporary ? install->temporary : "",
                     trouble, *errors ? ": " : "", errors);
}

static void on_child_ended(void *ctx, int wait_status)
{
    struct image_install *install = ctx;

    switch (install->state) {
    case INSTALL_LOCKING:
        install_go_on(install, wait_status, "the lock cannot be had", install_try_lock);
        break;
    case INSTALL_CHECKING:
        install_checked(install, wait_status);
        break;
    case INSTALL_RUNNING:
        install_installed(install, wait_status);
        break;
    case INSTALL_SEALING:
        install_go_on(install, wait_status, "has no digests", install_sealed);
        break;
    case INSTALL_SYNCING:
        install_go_on(install, wait_status, "cannot be synced to disk", install_synced);
        break;
    case INSTALL_PUBLISHING:
        install_succeed(install, true); /* there, whether the folder is on disk or not */
        break;
    default:
        install_remove_temporary(install);
        break;
    }
}

static void on_timeout(void *ctx)
{
    struct image_install *install = ctx;

    install_fail(install, "not finished after pull_timeout_ms %u", install->plan.timeout_ms);
}

static void on_stalled(void *ctx)
{
    struct image_install *install = ctx;

    install_fail(install, "less than %" PRIu64 " bytes came within pull_stall_timeout_ms %u",
                 install_stall_least_bytes(&install->stall), install->plan.stall_timeout_ms);
}

/* Birth. */

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
    install->identity.limit = IDENTITY_MAX_BYTES;
    install_child_init(&install->child, loop, on_child_ended, install);
    install->child.output.progress = on_progress;
    install->child.output.ctx = install;
    list_init(&install->node);
    loop_notice_init(&install->begin, on_begin, install);
    loop_notice_init(&install->over, on_cleaned, install);
    ret = install_plan_copy(&install->plan, spec);
    if (ret == 0)
        ret = loop_timer_new(loop, on_timeout, install, &install->timer);
    if (ret == 0)
        ret = install_stall_init(&install->stall, loop, install->plan.stall_timeout_ms,
                                 on_stalled, install);
    if (ret < 0) {
        install_free(install);
        return ret;
    }
    list_append(&jobs->installs, &install->node);
    loop_timer_arm(install->timer, install->plan.timeout_ms);
    loop_defer(loop, &install->begin);
    *ret_install = install;
    return 0;
}
