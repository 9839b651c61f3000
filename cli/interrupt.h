/* interrupt.h - SIGINT, SIGTERM and SIGHUP: the first is noted, the second ends the process at
 * once. */
#pragma once

#include "loop.h"

#define INTERRUPT_SIGNALS 3

struct interrupt {
    int caught; /* 0: none yet */
    struct loop_signal *sources[INTERRUPT_SIGNALS];
};

/* Call before there are threads. 0 or -errno. */
int interrupt_init(struct interrupt *interrupt, struct loop *loop);
void interrupt_done(struct interrupt *interrupt);
/* When nothing is left that a signal would have to end in order: it ends the process again,
 * even one that waits for a reader. */
void interrupt_release(struct interrupt *interrupt);
