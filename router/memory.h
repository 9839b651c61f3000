/* memory.h - how the process keeps its heap: quick while bodies of some MiB come and go, small
 * when it is quiet again. */
#pragma once

#include "router.h"

struct memory {
    struct router *router;
    struct loop_timer *quiet;
};

/* Before anything is allocated. */
void memory_tune(void);

/* Gives free memory back MEMORY_QUIET_MS after the last call, if no other came. Uses
 * passthrough.idle. 0 or -errno. */
int memory_init(struct memory *memory, struct router *router);
void memory_done(struct memory *memory);
