/* tree.h - the process tree of one exec: its program and all that descends from it, wherever it
 * went (contract 5.2.5).
 *
 * Two ways to hold a tree together, chosen once for the process:
 *   cgroup  (tree_cgroup.c)  cgroup v2 with clone3 and cgroup.kill: what VMs have
 *   keeper  (tree_keeper.c)  a subreaper process for each exec, which inherits every orphan and
 *                            kills until nothing is left (keeper.c): where there is no cgroup
 *
 * A tree outlives its exec as long as background children live; it is then held by itself and
 * goes away with the last of them. Loop's thread only. */
#pragma once

#include "loop.h"
#include "reap.h"
#include "spawn.h"

/* What all trees of the process share. */
struct trees {
    struct loop *loop;
    struct reaper *reaper;
    int proc_fd;        /* /proc, for the keepers */
    int cgroup_fd;      /* folder of the execs' cgroups; -1: keepers */
    uint64_t sequence;  /* names the next cgroup */
    struct list spares; /* struct cgroup_tree: empty cgroups to use again */
    unsigned spare_count;
};

struct tree;

/* Never called from inside the call they answer, but for `started`. */
struct tree_events {
    /* The program runs; also from inside tree_start(). Not when it failed. */
    void (*started)(void *ctx);
    /* The program could not be started. Nothing else comes. */
    void (*failed)(void *ctx, const struct spawn_failure *failure);
    /* The program itself ended, once. */
    void (*ended)(void *ctx, int wait_status);
    /* After tree_kill(): nothing of the tree lives any more. Once. */
    void (*killed)(void *ctx);
};

/* OWN_CGROUP_FD: a folder of a cgroup v2 hierarchy in which folders may be made, or -1.
 * Consumed, also on failure. One that lacks cgroup.kill is not used. 0 or -errno. */
int trees_init(struct trees *trees, struct loop *loop, struct reaper *reaper,
               int own_cgroup_fd);
void trees_done(struct trees *trees);

/* Starts the program. SPAWN is borrowed for the call (its cgroup_fd is filled in here); EVENTS
 * for the tree's life. -1: it could not be started, *ret_failure says why; or it shows later,
 * as `failed`. */
int tree_start(struct trees *trees, const struct spawn *spawn, const struct tree_events *events,
               void *ctx, struct tree **ret_tree, struct spawn_failure *ret_failure);
/* SIGKILL to all of it, races with forks included. May be repeated. */
void tree_kill(struct tree *tree);
/* Sends the signal to the process group of the program, as long as that lives. */
void tree_signal(struct tree *tree, int number);
/* The exec is over: no callback follows, what lives on is left alone. NULL is fine. */
void tree_release(struct tree *tree);
