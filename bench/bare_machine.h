/* bare_machine.h - a clone of a template without adapter, router and confinement: QEMU as a
 * script would start it, and the raw channel to the agent in it. What the others are measured
 * by. */
#pragma once

#include <stdbool.h>

#include "bench.h"

struct bare;

enum bare_kind {
    BARE_ALONE,
    BARE_NETWORK, /* with QEMU's own user-mode network, 10.0.2.0/24 as the adapter's */
    BARE_KIND_MAX
};

/* Whether there is what it starts from: the adapter's kept template, used last, of a machine as
 * the benchmarks ask for, and the image. False for adapters without. Once a process and kind;
 * a machine of that kind must have been the last one that was made. */
bool bare_possible(struct bench *bench, enum bare_kind kind);
/* From the start of QEMU until the agent's first PONG. -1 with a line on stderr. */
int bare_start(struct bench *bench, enum bare_kind kind, double *ret_ms,
               struct bare **ret_bare);
void bare_stop(struct bare *bare);
DEFINE_CLEANUP(struct bare *, bare_stop)

/* One PING until its PONG, in ms; < 0: it did not come. */
double bare_ping(struct bare *bare);
/* TOTAL bytes into the guest as PINGs with padding, some of them under way at once; MiB/s, 0
 * when it failed. */
double bare_channel(struct bare *bare, size_t total);

/* The channel, with the guest's HELLO to be read first; the caller's from now on, and nothing
 * of above works any more. -1: it is broken. */
int bare_take_agent(struct bare *bare);
