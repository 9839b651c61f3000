/* loop.h - the one thread that owns all state: descriptors, timers, signals, children,
 * wake-ups.
 *
 * Everything but loop_post() belongs to the thread that runs the loop. Callbacks never run from
 * inside the call that registers them. A source may be freed from any callback, its own
 * included; after its free it never fires again, even if its event was already collected in
 * this turn. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"
#include "list.h"
#include "proc.h"

struct loop;
struct loop_io;
struct loop_timer;
struct loop_signal;
struct loop_child;

int loop_new(struct loop **ret_loop); /* 0 or -errno */
void loop_free(struct loop *loop);    /* the caller freed all sources before */
DEFINE_CLEANUP(struct loop *, loop_free)

/* Runs until loop_stop(); returns its code, or -errno when the kernel fails us. */
int loop_run(struct loop *loop);
/* One turn: waits at most TIMEOUT_MS (-1: for ever) and dispatches. For tests and clients. */
int loop_turn(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop, int code);

/* Memory for what a callback reads and is done with before it returns: shared by all sources,
 * so that bulk data needs none of its own for each. */
#define LOOP_SCRATCH_BYTES (256u * 1024)
uint8_t *loop_scratch(struct loop *loop);

uint64_t loop_now_ms(const struct loop *loop); /* monotonic, as of this turn */

/* Calls FN on the loop's thread in the next turn. Thread-safe; -ENOMEM, or 0. FIFO. What is
 * still waiting when the loop is freed is dropped. */
int loop_post(struct loop *loop, void (*fn)(void *ctx), void *ctx);

/* The same without memory: the notice lives in its owner, and being queued twice is being
 * queued once. A notice is used either with loop_notify() or with loop_defer(), not with both.
 */
typedef void (*loop_notice_fn)(void *ctx);
struct loop_notice {
    struct list node;
    loop_notice_fn fn;
    void *ctx;
    bool posted; /* made by loop_post(), which frees it */
};
void loop_notice_init(struct loop_notice *notice, loop_notice_fn fn, void *ctx);
/* Next turn; thread-safe. FIFO with loop_post(). */
void loop_notify(struct loop *loop, struct loop_notice *notice);
/* Before the loop waits again: when everything else of this turn is done. Loop's thread only.
 */
void loop_defer(struct loop *loop, struct loop_notice *notice);
/* Afterwards FN is not called until it is queued again. Loop's thread only. True: it was
 * queued. */
bool loop_notice_cancel(struct loop *loop, struct loop_notice *notice);

/* EVENTS: EPOLLIN, EPOLLOUT; EPOLLHUP and EPOLLERR always come. Level-triggered. FD is
 * borrowed. */
typedef void (*loop_io_fn)(void *ctx, uint32_t events);
int loop_io_new(struct loop *loop, int fd, uint32_t events, loop_io_fn fn, void *ctx,
                struct loop_io **ret_io);
int loop_io_set_events(struct loop_io *io,
                       uint32_t events); /* 0: keeps HUP and ERR quiet too */
void loop_io_free(struct loop_io *io);
DEFINE_CLEANUP(struct loop_io *, loop_io_free)

/* A timer is made disarmed and fires once per arming, never early. */
typedef void (*loop_timer_fn)(void *ctx);
int loop_timer_new(struct loop *loop, loop_timer_fn fn, void *ctx,
                   struct loop_timer **ret_timer);
void loop_timer_arm(struct loop_timer *timer, uint64_t delay_ms); /* re-arming replaces */
void loop_timer_disarm(struct loop_timer *timer);
bool loop_timer_armed(const struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer);
DEFINE_CLEANUP(struct loop_timer *, loop_timer_free)

/* Blocks SIGNAL_NUMBER in this process (call before threads start) and delivers it here; it
 * stays blocked after the free. -EBUSY: this loop has a source for it already. */
typedef void (*loop_signal_fn)(void *ctx, int signal_number);
int loop_signal_new(struct loop *loop, int signal_number, loop_signal_fn fn, void *ctx,
                    struct loop_signal **ret_signal);
void loop_signal_free(struct loop_signal *source);
DEFINE_CLEANUP(struct loop_signal *, loop_signal_free)

/* Watches a child through its pidfd (consumed), reaps it and gives its wait status, once. The
 * end of a process that is not our child is noticed too, but its status is unknown to us. */
#define LOOP_CHILD_STATUS_UNKNOWN (-1)
typedef void (*loop_child_fn)(void *ctx, int wait_status);
int loop_child_new(struct loop *loop, pid_t pid, int own_pidfd, loop_child_fn fn, void *ctx,
                   struct loop_child **ret_child);
/* Starts a program and watches it: both, or neither. *ret_pid may be NULL. */
int loop_spawn(struct loop *loop, const struct proc_spec *spec, loop_child_fn fn, void *ctx,
               pid_t *ret_pid, struct loop_child **ret_child);
int loop_child_kill(struct loop_child *child, int signal_number); /* -ESRCH after its end */
void loop_child_free(
    struct loop_child *child); /* does not kill; the caller did, or hands it on */
DEFINE_CLEANUP(struct loop_child *, loop_child_free)
