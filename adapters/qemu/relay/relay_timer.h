/* relay_timer.h - the few timers that libslirp may want. */
#pragma once

#include <stdint.h>

#include "list.h"

struct relay_timer {
    struct list node;
    void (*fn)(void *ctx);
    void *ctx;
    int64_t at_ms; /* INT64_MAX: not armed */
};

int64_t relay_clock_ns(void);

/* Allocates; NULL: no memory. */
struct relay_timer *relay_timer_new(struct list *timers, void (*fn)(void *ctx), void *ctx);
void relay_timer_free(struct relay_timer *timer);
/* Milliseconds until the first one, -1: none, and what is due runs. */
int relay_timers_wait_ms(const struct list *timers);
void relay_timers_run(struct list *timers);
