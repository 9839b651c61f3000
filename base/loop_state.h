/* loop_state.h - what the files loop*.c share; nobody else includes it. */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "list.h"
#include "loop.h"

struct loop {
    int epoll_fd;
    int wake_fd;     /* eventfd, edge-triggered: written to, never read */
    bool in_turn;    /* sources freed now may be in the collected events */
    bool stopping;   /* loop_stop() was called, loop_run() did not return yet */
    int code;        /* of loop_stop() */
    uint64_t now_ns; /* CLOCK_MONOTONIC as of this turn */
    uint8_t *scratch;

    struct loop_timer **heap; /* armed timers, earliest first */
    size_t heap_count;
    size_t heap_capacity; /* >= timer_count, so that arming cannot fail */
    size_t timer_count;
    uint64_t timer_sequence; /* of the latest arming */

    struct list dead_ios; /* freed in this turn, released at its end */
    struct list signals;  /* struct loop_signal */
    struct list deferred; /* struct loop_notice, for the end of this turn */

    pthread_mutex_t lock; /* guards the rest: the only state other threads touch */
    struct list incoming; /* struct loop_notice, for the next turn */
    struct list running;  /* struct loop_notice, of this turn */
    bool sleeping;        /* in epoll_wait(), or about to be: needs a wake-up */
};

uint64_t loop_clock_ns(void);

/* loop_timer.c: time until the first timer, rounded up; -1: none is armed. */
int loop_timers_timeout_ms(const struct loop *loop);
void loop_timers_dispatch(struct loop *loop);
