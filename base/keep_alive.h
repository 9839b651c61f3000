/* keep_alive.h - whether a peer that says nothing is lost. Pure: its owner has the timer and
 * sends what is asked for.
 *
 * Questions without an answer are counted, one a tick of the timer; the clock alone proves
 * nothing. A process that was stopped, or starved, finds much time gone at its first tick, and
 * what the peer said meanwhile still unread: it asks, and reads before the next one. */
#pragma once

#include <stdint.h>

enum keep_alive_verdict {
    KEEP_ALIVE_WAIT, /* the peer was heard: nothing to do */
    KEEP_ALIVE_ASK,  /* send a PING */
    KEEP_ALIVE_LOST  /* nothing came in all the spans; said again at each further tick */
};

struct keep_alive {
    uint32_t interval_ms; /* > 0; a PING after so much silence, then at each tick */
    unsigned spans_max;   /* > 1; of silence: one before the first PING, one behind each */
    uint64_t heard_ms;    /* the clocks are the caller's, monotonic */
    uint64_t due_ms;      /* when the timer is to fire */
    unsigned asked;       /* since something was heard */
};

/* From now on it is watched: the timer is to be armed with interval_ms. */
void keep_alive_start(struct keep_alive *keep_alive, uint64_t now_ms);
/* Anything came. */
void keep_alive_heard(struct keep_alive *keep_alive, uint64_t now_ms);
/* The timer fired. RET_DELAY_MS: when it is to fire again, always set. */
enum keep_alive_verdict keep_alive_tick(struct keep_alive *keep_alive, uint64_t now_ms,
                                        uint32_t *ret_delay_ms);
