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
/* One was caught, or has come and waits to be. A ^C ends whoever writes into our pipe too, so
 * that the end of an input means nothing then. */
bool interrupt_is_near(const struct interrupt *interrupt);
/* When nothing is left that a signal would have to end in order: it ends the process again,
 * even one that waits for a reader. */
void interrupt_release(struct interrupt *interrupt);
