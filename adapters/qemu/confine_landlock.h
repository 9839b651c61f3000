/* confine_landlock.h - landlock's rules: which files a QEMU may open, and whether it gets TCP.
 *
 * Its memory, state, console and disks are descriptors and need no rule. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* 0 and a version from 1 on; -errno: this kernel has none. */
int confine_landlock_version(unsigned *ret_version);
struct landlock_options {
    unsigned version;
    const char *folder; /* of programs, beside the system's; may be NULL */
    bool network;       /* TCP is allowed, and what tells the name servers */
};

/* A rule set's descriptor or -errno. FDS are files that may be read. */
int confine_landlock_rules(const struct landlock_options *options, const int *fds,
                           size_t fd_count);
/* For this thread, for good; no_new_privs must be set. 0 or -errno. */
int confine_landlock_enter(int rules_fd);
