/* proc.h - starting programs and ending them for certain. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cleanup.h"

/* What a child gets. Only the descriptors listed here survive the exec. */
struct proc_fd {
    int fd;     /* ours, borrowed */
    int target; /* number in the child */
};

struct proc_spec {
    const char *program;            /* path (in WORKDIR), or a name looked up on our PATH */
    const char *const *argv;        /* NULL-terminated, argv[0] included */
    const char *const *environment; /* NULL-terminated; NULL: ours */
    const char *workdir;            /* NULL: ours */
    const struct proc_fd *fds;      /* 0, 1, 2 not listed: /dev/null */
    size_t fd_count;
    bool new_session;     /* setsid() */
    bool die_with_parent; /* PR_SET_PDEATHSIG SIGKILL, race with a dead parent closed */
    /* Runs in the child after the descriptors are in place, just before exec; async-signal-safe
     * code only. 0, or -errno, which proc_spawn() then returns. NULL: nothing. PROGRAM is
     * started also where the hook has given up the right to look into its folder, unless it is
     * a script; its short name may then be another one. */
    int (*before_exec)(void *ctx);
    void *before_exec_ctx;
};

/* Starts it; 0, or -errno of whichever step failed in parent or child (the exec's errno too).
 * On success *ret_pidfd is the caller's. All signals are default and unblocked in the child.
 * The caller's thread sleeps until the exec. Our memory is lent, not copied, so a big process
 * starts programs as fast as a small one, except with BEFORE_EXEC, which gets a copy. */
int proc_spawn(const struct proc_spec *spec, pid_t *ret_pid, int *ret_pidfd);

/* What proc_spawn()'s child does before its exec, for a child that was cloned otherwise and is
 * to go on without one: whatever else it has open stays open. PARENT is whom it dies with. 0 or
 * -errno. */
int proc_child_prepare(const struct proc_spec *spec, pid_t parent);

#define PROC_PATH_MAX 4096 /* NUL included */
/* A name without a slash becomes the first executable on PATH; others stay. 0 or -errno. */
int proc_find(const char *name, char ret_path[PROC_PATH_MAX]);

int proc_pidfd_open(pid_t pid);
int proc_pidfd_signal(int pidfd, int signal_number);

/* Puts /dev/null, which gives nothing and takes nothing, where 0, 1 or 2 is closed: else the
 * next descriptor that is opened lies there, to be taken for standard input or written to. The
 * first thing that a main() does. 0 or -errno. */
int proc_hold_standard_fds(void);

/* The program's own folder (for finding siblings); static storage, NULL on failure. */
const char *proc_self_directory(void);
