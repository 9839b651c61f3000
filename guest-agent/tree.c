/* tree.c - see tree.h: the choice between the two kinds. */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tree_state.h"

#define PROBE_NAME "exec-probe"

/* Whether folders of execs can be made, killed and removed below CGROUP_FD. */
static bool cgroup_usable(int cgroup_fd)
{
    bool usable;

    if (mkdirat(cgroup_fd, PROBE_NAME, 0755) < 0 && errno != EEXIST)
        return false;
    usable = faccessat(cgroup_fd, PROBE_NAME "/cgroup.kill", W_OK, 0) == 0;
    (void)unlinkat(cgroup_fd, PROBE_NAME, AT_REMOVEDIR);
    return usable;
}

int trees_init(struct trees *trees, struct loop *loop, struct reaper *reaper, int own_cgroup_fd)
{
    _cleanup_close_ int cgroup_fd = own_cgroup_fd;

    *trees = (struct trees){
        .loop = loop,
        .reaper = reaper,
        .proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .cgroup_fd = -1,
    };
    list_init(&trees->spares);
    if (cgroup_fd >= 0 && cgroup_usable(cgroup_fd))
        trees->cgroup_fd = take_fd(&cgroup_fd);
    else if (trees->proc_fd < 0)
        return -errno;
    return 0;
}

void trees_done(struct trees *trees)
{
    tree_cgroup_drop_spares(trees);
    closep(&trees->cgroup_fd);
    closep(&trees->proc_fd);
}

int tree_start(struct trees *trees, const struct spawn *spawn, const struct tree_events *events,
               void *ctx, struct tree **ret_tree, struct spawn_failure *ret_failure)
{
    int result = -1;

    ret_failure->step = SPAWN_SETUP;
    if (trees->cgroup_fd >= 0)
        result = tree_cgroup_start(trees, spawn, ret_tree, ret_failure);
    /* Programs are root and may spoil the cgroups, but only for themselves. With as many
     * processes as they may have, there is no other place for one more. */
    if (result < 0 && ret_failure->step == SPAWN_SETUP && ret_failure->error != EAGAIN)
        result = tree_keeper_start(trees, spawn, ret_tree, ret_failure);
    if (result < 0)
        return -1;
    (*ret_tree)->events = events;
    (*ret_tree)->ctx = ctx;
    if (trees->cgroup_fd >= 0) /* a keeper tells later */
        events->started(ctx);
    return 0;
}

void tree_kill(struct tree *tree)
{
    if (tree->kill != TREE_KILL_NONE)
        return;
    tree->kill = TREE_KILL_ASKED;
    tree->ops->kill(tree);
}

void tree_signal(struct tree *tree, int number)
{
    if (tree->kill == TREE_KILL_NONE)
        tree->ops->signal(tree, number);
}

void tree_release(struct tree *tree)
{
    if (!tree)
        return;
    tree->events = NULL;
    tree->ops->release(tree);
}
