/* memory.c - see memory.h. */
#include "memory.h"

#include <malloc.h>

#include "router_limits.h"

/* Buffers of messages are reused, not mapped and cleared by the kernel anew each time: that
 * made messages of 3 MB three times faster. nng's threads need no heaps of their own. */
#define MMAP_THRESHOLD_BYTES (32 * 1024 * 1024)
#define TRIM_THRESHOLD_BYTES (32 * 1024 * 1024)
#define ARENAS 2

void memory_tune(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES); /* hints; it works without them */
    (void)mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES);
    (void)mallopt(M_ARENA_MAX, ARENAS);
}

static void on_idle(void *ctx)
{
    struct memory *memory = ctx;

    loop_timer_arm(memory->quiet, MEMORY_QUIET_MS);
}

static void on_quiet(void *ctx)
{
    struct memory *memory = ctx;

    if (memory->router->passthrough.open == 0)
        (void)malloc_trim(0); /* whether it found something does not matter */
}

int memory_init(struct memory *memory, struct router *router)
{
    int result;

    *memory = (struct memory){ .router = router };
    result = loop_timer_new(router->loop, on_quiet, memory, &memory->quiet);
    if (result < 0)
        return result;
    router->passthrough.idle = on_idle;
    router->passthrough.idle_ctx = memory;
    return 0;
}

void memory_done(struct memory *memory)
{
    if (!memory->router)
        return;
    if (memory->router->passthrough.idle_ctx == memory)
        memory->router->passthrough.idle = NULL;
    loop_timer_free(memory->quiet);
}
