/* launcher.h - starting a sandbox's processes under bubblewrap.
 *
 * The root is thrown away with the namespace that it is mounted in, so nothing is left behind,
 * whatever happens to the adapter. Which root depends on who we are:
 *
 *   root      a tmpfs of the sandbox's disk size holds everything; /usr is an overlay of the
 *             host's on it. Every path is writable and the size limit is real, as in a VM.
 *             Capabilities that reach beyond the sandbox (SYS_ADMIN, NET_ADMIN, …) are dropped.
 *   others    bubblewrap's own tmpfs, and /usr of the host read-only; in a user namespace, so
 *             files can have no other owner. */
#pragma once

#include "backend.h"

struct launcher {
    char *bwrap;      /* program, or name on PATH */
    char *agent;      /* the guest agent's program */
    char *mount_path; /* where a root is mounted, each in a namespace of its own; NULL: not root
                       */
};

/* Finds the programs (NULL: beside our own, on PATH). RUNTIME_DIR is made if it is missing.
 * S300 when there is no agent. */
int launcher_init(struct launcher *launcher, const char *bwrap, const char *agent,
                  const char *runtime_dir, struct sandbox_error *err);
void launcher_done(struct launcher *launcher);

/* CHANNEL_FD and CONSOLE_FD are the sandbox's ends, borrowed. 0, or -errno. The sandbox dies
 * with us. */
int launcher_start(const struct launcher *launcher, const struct machine_spec *spec,
                   int channel_fd, int console_fd, pid_t *ret_pid, int *ret_pidfd);
