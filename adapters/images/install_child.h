/* install_child.h - the child process of an install's present step, and what it says.
 *
 * One at a time. It has a session of its own, dies with us and is killed with all it started.
 */
#pragma once

#include "install_output.h"
#include "loop.h"

struct install_child;

/* One of the child's pipes. */
struct install_pipe {
    struct install_child *owner;
    int fd;
    struct loop_io *io;
    void (*take)(struct install_child *owner, const char *data, size_t size);
};

struct install_child {
    struct loop *loop;
    pid_t pid;
    struct loop_child *child; /* NULL: none runs */
    struct install_pipe output_pipe;
    struct install_pipe errors_pipe;
    struct install_output output; /* its `progress` is the owner's to set */
    struct install_errors errors;
    /* Everything it said has been taken. The owner may be gone afterwards. */
    void (*ended)(void *ctx, int wait_status);
    void *ctx;
};

void install_child_init(struct install_child *child, struct loop *loop,
                        void (*ended)(void *ctx, int wait_status), void *ctx);
/* ARGV is NULL-terminated. REPORTS: its standard output goes to `output`, line by line; else it
 * is taken with standard error. 0 or -errno. */
int install_child_start(struct install_child *child, const char *const *argv, bool reports);
bool install_child_runs(const struct install_child *child);
/* Nothing more is taken of what it says; `ended` still comes if one runs. */
void install_child_kill(struct install_child *child);
/* Kills and forgets it: no callback follows. */
void install_child_done(struct install_child *child);
