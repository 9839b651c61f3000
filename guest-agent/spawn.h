/* spawn.h - from a list of words to a running program (contract 5.2.4, 5.2.6).
 *
 * The child borrows the memory of its parent, which sleeps until the exec (as vfork does): no
 * page is copied. The program gets a session of its own, the three descriptors and nothing
 * else, default signals, and the agent's umask, which is 022. Used by the agent itself and by
 * the keepers. */
#pragma once

#include <sys/types.h>

/* What runs in a child that borrows memory: no sanitizer may look on. */
#if defined(__clang__)
#define CHILD_CODE                                                                             \
    __attribute__((no_sanitize("address", "thread", "undefined", "coverage"),                  \
                   no_stack_protector))
#else
#define CHILD_CODE                                                                             \
    __attribute__((no_sanitize("address", "thread", "undefined"), no_stack_protector))
#endif

struct spawn {
    char *const *argv;        /* NULL-terminated; the first is the program */
    char *const *environment; /* NULL-terminated; its PATH finds the program */
    const char *workdir;
    int fds[3];    /* become 0, 1, 2; borrowed, all above 2 */
    int cgroup_fd; /* folder the program is born in; -1: ours */
    /* CHILD_CODE, called in the child before all else; raw system calls only. NULL: nothing. */
    void (*announce)(pid_t pid);
};

/* The step that failed. */
enum spawn_step { SPAWN_SETUP, SPAWN_WORKDIR, SPAWN_PROGRAM, SPAWN_STEP_MAX };

struct spawn_failure {
    enum spawn_step step;
    int error; /* errno */
};

/* The pid; the caller reaps it. -1: *ret_failure says why, there is no child any more. One
 * thread at a time. */
pid_t spawn_program(const struct spawn *spawn, struct spawn_failure *ret_failure);

/* Signals and limits of the agent's own that a program must not inherit; before the first
 * spawn, while there is one thread. */
void spawn_prepare_process(void);
