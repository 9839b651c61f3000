/* stop.h - the end of a sandbox, whatever its cause (contract 5.4): the guest is asked to power
 * off, after 200 ms the machine is killed, and when it is gone the place is free.
 *
 * One end a sandbox: who comes later joins it. A machine that cannot be killed leaves the
 * sandbox as it was, and a later stop tries again. */
#pragma once

#include "sandbox.h"

#define STOP_POWEROFF_MS 200u
/* From the kill to the machine's end; then it counts as one that cannot be killed. */
#define STOP_KILL_MS 5000u

/* Who wants to know the outcome; lives in its owner. */
struct stop_wait {
    struct list node;
    bool until_deleted; /* not before the scratch files are deleted */
    /* Never from inside sandbox_stop(). ERR is NULL when the machine is gone, else S300
     * `may_have_run`: it cannot be killed (borrowed, may be moved). */
    void (*done)(void *ctx, struct sandbox_error *err);
    void *ctx;
};
void stop_wait_init(struct stop_wait *wait, void (*done)(void *ctx, struct sandbox_error *err),
                    void *ctx);
void stop_wait_cancel(struct stop_wait *wait);

/* Ends a sandbox that is not gone; WHY ("it was stopped") goes into the messages of the calls
 * that lose it, unless an end is in progress already. WAIT may be NULL. While creating, only
 * boot.c may call it. */
void sandbox_stop(struct sandbox *sandbox, const char *why, struct stop_wait *wait);
/* The machine is gone: the end of every end. WHY is used when nobody had asked for it. */
void sandbox_machine_gone(struct sandbox *sandbox, const char *why);
/* The creation failed before there was a machine. */
void sandbox_discard(struct sandbox *sandbox, const char *why);

/* The link to its guest ended for REASON and is freed here; so does the sandbox. */
void sandbox_link_closed(struct sandbox *sandbox, const char *reason);

/* The part of struct sandbox that stop.c owns. */
enum stop_phase {
    STOP_IDLE,   /* no end is in progress */
    STOP_ASKED,  /* the guest was asked; the timer leads to the kill */
    STOP_KILLED, /* the timer leads to giving up */
    STOP_FAILED, /* `failure` is told in the next turn, then idle again */
    STOP_GONE,   /* the machine is freed in the next turn */
    STOP_PHASE_MAX
};

struct stop {
    enum stop_phase phase;
    enum sandbox_state back; /* where a failed stop leads */
    struct loop_timer *timer;
    struct agent_call *poweroff; /* NULL: none in flight */
    struct list waits;           /* struct stop_wait */
    struct loop_notice report;
    char failure[SANDBOX_WHY_MAX];
};
int stop_init(struct sandbox *sandbox); /* for sandbox.c; 0 or -errno */
void stop_done(struct sandbox *sandbox);
