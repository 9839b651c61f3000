/* walk.h - a directory tree from top to bottom (contract 8.1): depth first, names in byte
 * order, links not followed, other mounted file systems not entered, what vanishes is skipped.
 *
 * Any depth works: only the deepest levels keep a descriptor, the stack is on the heap. */
#pragma once

#include <sys/stat.h>

#include "cleanup.h"

struct walk;

enum walk_kind {
    WALK_FILE,  /* anything but a directory; links too */
    WALK_ENTER, /* a directory, before what is in it */
    WALK_LEAVE, /* the same, after that */
    WALK_MOUNT  /* a directory on which something is mounted; not entered */
};

/* Borrowed until the next step. */
struct walk_entry {
    enum walk_kind kind;
    int folder_fd; /* the directory it is in */
    const char *name;
    const char *path;     /* the root's text, and what follows */
    const char *relative; /* what follows alone */
    mode_t mode;          /* its type and bits; not with WALK_LEAVE */
};

/* ROOT_FD: a directory open for reading, consumed also on failure; it is no entry itself.
 * ROOT_PATH: how entries' paths begin. 0 or -errno. */
int walk_open(int own_root_fd, const char *root_path, struct walk **ret_walk);
/* 1: an entry; 0: that was all; -errno: walk_path() says of what. */
int walk_next(struct walk *walk, struct walk_entry *ret_entry);
const char *walk_path(struct walk *walk);
void walk_free(struct walk *walk);
DEFINE_CLEANUP(struct walk *, walk_free)
