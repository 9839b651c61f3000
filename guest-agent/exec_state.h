/* exec_state.h - what the files exec*.c share; nobody else includes it. */
#pragma once

#include "exec.h"

/* States, each left only forwards:
 *   running   the program runs
 *   draining  it ended; its pipes are read empty, and then for EXEC_DRAIN_MS in all
 *   killing   deadline or CANCEL: the whole tree is being killed, `killed` is awaited
 *   cleared   all of it is dead; what is left in the pipes goes out, for EXEC_DRAIN_MS in all
 *   over      answered; the struct is about to be freed */
enum exec_state {
    EXEC_RUNNING,
    EXEC_DRAINING,
    EXEC_KILLING,
    EXEC_CLEARED,
    EXEC_OVER,
    EXEC_STATE_MAX
};

enum { EXEC_STDOUT, EXEC_STDERR, EXEC_OUTPUTS };

#define EXEC_DRAIN_MS 100u
/* Of output that nobody has read: fewer turns between program and agent. */
#define EXEC_PIPE_BYTES (256 * 1024)
/* After one whose pages the disk did not take as they were: trying costs something. */
#define EXEC_COPIED_READS 8u

/* One output. Read only against the host's window, so that a slow host slows the program. */
struct exec_output {
    struct exec *exec;
    unsigned stream; /* its number in the protocol */
    int fd;
    int their_fd; /* the program's end. Ours, too, while it runs: its exit then wakes us once,
                   * not for each pipe and again for itself */
    struct loop_io *io;
    uint64_t window;
    uint64_t
        owed; /* bytes that lay in the pipe when the program ended; sent whatever the time */
    unsigned copied_reads; /* so many more, as the last ones were of odd sizes */
    bool ended;
};

/* Standard input: what came and the program did not take yet; at most one window. */
struct exec_input {
    struct exec *exec;
    int fd; /* -1: closed, further bytes are thrown away */
    struct loop_io *io;
    struct buf waiting;
    uint64_t window; /* what the host may still send */
    uint64_t taken;  /* since the last CREDIT */
    bool ended;      /* END came */
};

struct exec {
    struct call call;
    enum exec_state state;
    struct tree *tree;
    struct loop_timer *deadline;
    struct loop_timer *drain;
    struct exec_output outputs[EXEC_OUTPUTS];
    struct exec_input input;
    int wait_status;
    bool announce; /* HEAD is wanted */
    bool timed_out;
    bool cancelled;
    char *program; /* for messages */
    char *workdir;
};

/* exec_output.c */
int exec_output_init(struct exec_output *output, struct exec *exec, unsigned stream);
void exec_output_done(struct exec_output *output);
/* Reads until the pipe is empty, its end, or the window's. */
void exec_output_pump(struct exec_output *output);
/* The program ended: reads what there is, and notes what still lies in the pipe. */
void exec_output_drain(struct exec_output *output);
/* Nothing of it is sent any more; what comes later is read and thrown away for ever. */
void exec_output_end(struct exec_output *output);

/* exec_input.c */
int exec_input_init(struct exec_input *input, struct exec *exec, int *ret_their_fd);
void exec_input_done(struct exec_input *input);
int exec_input_data(struct exec_input *input, struct span bytes);
int exec_input_slot(struct exec_input *input, unsigned slot, size_t size);
void exec_input_end(struct exec_input *input);

/* exec_next.c: 0 or -errno. */
int exec_take(struct serve *serve, struct exec **ret_exec);
void exec_make_next(struct serve *serve);
void exec_free(struct exec *exec);

/* exec.c: an output ended, or time passed: is there anything left to wait for? */
void exec_check(struct exec *exec);
/* The exec's timers. */
void exec_drained(void *ctx);
void exec_deadline_passed(void *ctx);
