/* start_queue.h - who may keep a processor busy with the start of a machine.
 *
 * A start is processor time, so no more go on at once than there are processors: those that
 * wait in line are then ready at 1, 1, 2, 2, … times the time of one (two processors), where
 * all at once would all be ready at the last of these times. First come, first served within a
 * rank; a rank never waits for a lower one, whose turns count only against their own kind.
 *
 * A turn ends when its owner gives it back. What is wedged keeps nobody: after HOLD_MS the turn
 * is taken away, and its owner goes on without one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

enum start_rank {
    START_CALLER, /* somebody waits for this machine */
    START_SETTLE, /* a machine does what its create did not wait for */
    START_REFILL, /* a machine for the pool */
    START_RANK_MAX
};

enum start_turn_state {
    START_TURN_NONE,    /* in no line */
    START_TURN_WAITING, /* in line; FN is called when its turn has come */
    START_TURN_HELD,    /* it is its turn; FN was called, or is about to be */
    START_TURN_STATE_MAX
};

struct start_queue {
    struct loop *loop;
    struct loop_timer *timer; /* of the first turn that is to be taken away */
    struct list waiting[START_RANK_MAX];
    struct list held;
    unsigned held_count[START_RANK_MAX];
    unsigned limit;
};

/* Lives in its owner, who gives it back before it ends. */
struct start_turn {
    struct list node; /* in `waiting` or `held` */
    struct start_queue *queue;
    enum start_turn_state state;
    enum start_rank rank;
    const char *name; /* of the machine, for the log; borrowed */
    uint32_t hold_ms;
    uint64_t until_ms; /* held */
    struct loop_notice come;
};

/* How many starts pay at once on this machine: one a processor. */
unsigned start_queue_limit(void);
/* 0 or -errno. */
int start_queue_init(struct start_queue *queue, struct loop *loop, unsigned limit);
void start_queue_done(struct start_queue *queue);

/* FN runs from the loop, never from inside a call to here. */
void start_turn_init(struct start_turn *turn, struct start_queue *queue, const char *name,
                     void (*fn)(void *ctx), void *ctx);
/* True: it is its turn, for another HOLD_MS. False: it waits, and FN is called then. */
bool start_turn_take(struct start_turn *turn, enum start_rank rank, uint32_t hold_ms);
/* The same, but FN is called in any case. */
void start_turn_ask(struct start_turn *turn, enum start_rank rank, uint32_t hold_ms);
/* Any time: gives it back, or leaves the line. FN is not called any more. */
void start_turn_give(struct start_turn *turn);
