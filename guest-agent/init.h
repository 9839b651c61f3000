/* init.h - from /init in an initramfs to a sandbox with its own root.
 *
 * Mounts, modules, disks, root, loopback, channel; everything is in place before RUN, so that a
 * machine may be saved as a template as soon as it says HELLO. */
#pragma once

#include <stdbool.h>

/* What it serves with, all consumed. */
struct init_fds {
    int channel;
    int mailbox; /* the disk for bulk; -1: none */
    int cgroup;  /* the folder for the execs' cgroups; -1: none */
};
typedef int (*init_run_fn)(const struct init_fds *own_fds, bool machine);

/* Never returns: the machine is powered off when RUN does, or when a step fails, with the
 * reason on the console. */
_Noreturn void init_machine(init_run_fn run);
