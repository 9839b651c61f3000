/* tree_cgroup.c - a tree as a cgroup: the program is born in it and its children cannot leave.
 *
 * Making and removing a cgroup costs more than an exec does, so empty ones are used again. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "log.h"
#include "tree_state.h"

#define SPARE_MAX 8u
#define NAME_BYTES 32

struct cgroup_tree {
    struct tree tree;
    struct list node; /* in trees->spares */
    struct reap_watch program;
    int folder_fd;
    int events_fd; /* cgroup.events: shows when the last process is gone */
    struct loop_io *emptied;
    struct loop_notice check;
    char name[NAME_BYTES];
};

static struct cgroup_tree *cgroup_tree(struct tree *tree)
{
    return CONTAINER_OF(tree, struct cgroup_tree, tree);
}

static void cgroup_free(struct cgroup_tree *cgroup)
{
    loop_notice_cancel(cgroup->tree.trees->loop, &cgroup->check);
    loop_io_free(cgroup->emptied);
    closep(&cgroup->events_fd);
    closep(&cgroup->folder_fd);
    /* Stays behind when a program made cgroups of its own in it; the VM ends before that hurts.
     */
    if (unlinkat(cgroup->tree.trees->cgroup_fd, cgroup->name, AT_REMOVEDIR) < 0)
        log_event(LOG_DEBUG, "cgroup_kept", log_text("name", cgroup->name));
    free(cgroup);
}

static bool cgroup_empty(const struct cgroup_tree *cgroup)
{
    char text[256];
    ssize_t size = pread(cgroup->events_fd, text, sizeof(text) - 1, 0);

    if (size < 0)
        return true; /* -ENODEV: the folder itself is gone */
    text[size] = 0;
    return strstr(text, "populated 0") != NULL;
}

/* Moves the tree on when it may have become empty. */
static void cgroup_settle(void *ctx)
{
    struct cgroup_tree *cgroup = ctx;
    struct trees *trees = cgroup->tree.trees;

    if (!cgroup_empty(cgroup))
        return;
    if (cgroup->tree.kill == TREE_KILL_ASKED) {
        cgroup->tree.kill = TREE_KILL_CONFIRMED;
        if (cgroup->tree.events) {
            cgroup->tree.events->killed(cgroup->tree.ctx); /* may release the tree */
            return;
        }
    }
    if (cgroup->tree.events || cgroup->program.pid != 0)
        return;
    if (trees->spare_count == SPARE_MAX) {
        cgroup_free(cgroup);
        return;
    }
    (void)loop_io_set_events(cgroup->emptied, 0);
    list_append(&trees->spares, &cgroup->node);
    trees->spare_count++;
}

static void cgroup_notified(void *ctx, uint32_t events)
{
    (void)events;
    cgroup_settle(ctx);
}

/* Looks now, and again whenever the kernel says that the last process left. */
static void cgroup_watch(struct cgroup_tree *cgroup)
{
    if (loop_io_set_events(cgroup->emptied, EPOLLPRI) < 0)
        log_event(LOG_ERROR, "cgroup_unwatched", log_text("name", cgroup->name));
    loop_notify(cgroup->tree.trees->loop, &cgroup->check);
}

static void cgroup_program_ended(void *ctx, int wait_status)
{
    struct cgroup_tree *cgroup = ctx;

    if (cgroup->tree.events)
        cgroup->tree.events->ended(cgroup->tree.ctx, wait_status);
    else
        cgroup_settle(cgroup);
}

static void cgroup_kill(struct tree *tree)
{
    struct cgroup_tree *cgroup = cgroup_tree(tree);
    _cleanup_close_ int fd = openat(cgroup->folder_fd, "cgroup.kill",
                                    O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || write(fd, "1", 1) != 1)
        log_event(LOG_ERROR, "cgroup_kill_failed", log_text("error", strerror(errno)));
    cgroup_watch(cgroup);
}

static void cgroup_signal(struct tree *tree, int number)
{
    pid_t pid = cgroup_tree(tree)->program.pid;

    if (pid > 0)
        (void)kill(-pid, number); /* it may have ended in this moment */
}

static void cgroup_release(struct tree *tree)
{
    struct cgroup_tree *cgroup = cgroup_tree(tree);

    if (cgroup->program.pid == 0 && cgroup_empty(cgroup))
        cgroup_settle(cgroup);
    else
        cgroup_watch(cgroup);
}

static const struct tree_ops cgroup_ops = {
    .kill = cgroup_kill,
    .signal = cgroup_signal,
    .release = cgroup_release,
};

static int cgroup_open(struct cgroup_tree *cgroup)
{
    struct trees *trees = cgroup->tree.trees;

    if (mkdirat(trees->cgroup_fd, cgroup->name, 0755) < 0)
        return -errno;
    cgroup->folder_fd = openat(trees->cgroup_fd, cgroup->name,
                               O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->folder_fd < 0)
        return -errno;
    cgroup->events_fd = openat(cgroup->folder_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (cgroup->events_fd < 0)
        return -errno;
    return loop_io_new(trees->loop, cgroup->events_fd, 0, cgroup_notified, cgroup,
                       &cgroup->emptied);
}

static int cgroup_new(struct trees *trees, struct cgroup_tree **ret_cgroup)
{
    struct cgroup_tree *cgroup = calloc(1, sizeof(*cgroup));
    int result;

    if (!cgroup)
        return -ENOMEM;
    *cgroup = (struct cgroup_tree){
        .tree = { .ops = &cgroup_ops, .trees = trees },
        .folder_fd = -1,
        .events_fd = -1,
    };
    list_init(&cgroup->node);
    loop_notice_init(&cgroup->check, cgroup_settle, cgroup);
    (void)snprintf(cgroup->name, sizeof(cgroup->name), "exec-%llu",
                   (unsigned long long)++trees->sequence);
    result = cgroup_open(cgroup);
    if (result < 0) {
        cgroup_free(cgroup);
        return result;
    }
    *ret_cgroup = cgroup;
    return 0;
}

static int cgroup_take(struct trees *trees, struct cgroup_tree **ret_cgroup)
{
    struct list *node = list_pop(&trees->spares);

    if (!node)
        return cgroup_new(trees, ret_cgroup);
    trees->spare_count--;
    *ret_cgroup = LIST_ENTRY(node, struct cgroup_tree, node);
    (*ret_cgroup)->tree.kill = TREE_KILL_NONE;
    return 0;
}

int tree_cgroup_start(struct trees *trees, const struct spawn *spawn, struct tree **ret_tree,
                      struct spawn_failure *ret_failure)
{
    struct spawn inside = *spawn;
    struct cgroup_tree *cgroup;
    int result = cgroup_take(trees, &cgroup);
    pid_t pid;

    if (result < 0) {
        *ret_failure = (struct spawn_failure){ .step = SPAWN_SETUP, .error = -result };
        return -1;
    }
    inside.cgroup_fd = cgroup->folder_fd;
    pid = spawn_program(&inside, ret_failure);
    if (pid < 0 && ret_failure->step == SPAWN_SETUP && ret_failure->error != EAGAIN)
        cgroup_free(cgroup); /* a program removed or changed it, not to be used again */
    else if (pid < 0)
        cgroup_settle(cgroup);
    if (pid < 0)
        return -1;
    result = reaper_watch(trees->reaper, pid, cgroup_program_ended, cgroup, &cgroup->program);
    if (result < 0) {
        /* Unwatched it is reaped as an orphan. */
        *ret_failure = (struct spawn_failure){ .step = SPAWN_SETUP, .error = -result };
        cgroup->program.pid = 0;
        tree_kill(&cgroup->tree);
        return -1;
    }
    *ret_tree = &cgroup->tree;
    return 0;
}

void tree_cgroup_drop_spares(struct trees *trees)
{
    struct list *node;

    while ((node = list_pop(&trees->spares)))
        cgroup_free(LIST_ENTRY(node, struct cgroup_tree, node));
    trees->spare_count = 0;
}
