/* confine_landlock.h - landlock's rules: which files a QEMU may open, and that it gets no TCP.
 *
 * Its memory, state, console and disks are descriptors and need no rule. */
#pragma once

#include <stddef.h>

/* 0 and a version from 1 on; -errno: this kernel has none. */
int confine_landlock_version(unsigned *ret_version);
/* A rule set's descriptor or -errno. FOLDER may be NULL. */
int confine_landlock_rules(unsigned version, const char *folder, const int *fds,
                           size_t fd_count);
/* For this thread, for good; no_new_privs must be set. 0 or -errno. */
int confine_landlock_enter(int rules_fd);
