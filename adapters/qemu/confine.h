/* confine.h - what QEMU may not do: its uid, capabilities, namespaces, files
 * (docs/security.md).
 *
 * Set up between fork and exec; QEMU's own system call filter (QEMU_SECCOMP) comes on top. Each
 * layer that this machine cannot give is left out with one warning at the start. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "error.h"

#define CONFINE_FOLDERS_MAX 8

struct confine {
    bool is_root;    /* we are: uid and gid are taken on, capabilities given up */
    bool namespaces; /* network, IPC, UTS and mounts of its own; a user's too when not root */
    /* Of a copy, for what carries a guest's network: no namespace for that. */
    bool keep_network;
    unsigned open_files_max; /* QEMU's; a copy may say otherwise */
    unsigned landlock;       /* version of the kernel's interface; 0: none */
    uid_t uid;
    gid_t gid;
    gid_t extra_group; /* 0: none */
    uid_t own_uid;
    gid_t own_gid;
    char *program_folder; /* of a QEMU outside the system's folders; NULL: inside */
};

struct confine_options {
    const char *user;
    const char *program; /* QEMU: a path, or a name on PATH */
    gid_t extra_group;   /* 0: none */
};

/* Looks up the user and tries which layers there are. S300. */
int confine_init(struct confine *confine, const struct confine_options *options,
                 struct sandbox_error *err);
void confine_done(struct confine *confine);

/* A rule set of landlock: the programs of the system and the (regular) files of FDS for
 * reading, nothing else, no TCP. -1: there is no landlock; else -errno. The caller closes it.
 */
int confine_rules(const struct confine *confine, const int *fds, size_t fd_count);

/* For proc_spec.before_exec; CTX is a struct confine_child. */
struct confine_child {
    const struct confine *confine;
    int rules_fd;     /* number in the child; -1: none */
    bool small_pages; /* no huge ones */
};
int confine_child(void *ctx);
