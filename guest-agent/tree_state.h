/* tree_state.h - what tree.c shares with the two kinds of trees; nobody else includes it. */
#pragma once

#include "tree.h"

struct tree_ops {
    void (*kill)(struct tree *tree);
    void (*signal)(struct tree *tree, int number);
    void (*release)(struct tree *tree);
};

/* Asked -> confirmed; never back. */
enum tree_kill_state { TREE_KILL_NONE, TREE_KILL_ASKED, TREE_KILL_CONFIRMED };

struct tree {
    const struct tree_ops *ops;
    const struct tree_events *events; /* NULL: released */
    void *ctx;
    struct trees *trees;
    enum tree_kill_state kill;
};

int tree_cgroup_start(struct trees *trees, const struct spawn *spawn, struct tree **ret_tree,
                      struct spawn_failure *ret_failure);
void tree_cgroup_drop_spares(struct trees *trees);

int tree_keeper_start(struct trees *trees, const struct spawn *spawn, struct tree **ret_tree,
                      struct spawn_failure *ret_failure);
