/* install_stall.c - see install_stall.h. */
#include "install_stall.h"

int install_stall_init(struct install_stall *stall, struct loop *loop, uint32_t timeout_ms,
                       void (*stalled)(void *ctx), void *ctx)
{
    *stall = (struct install_stall){ .timeout_ms = timeout_ms };
    return loop_timer_new(loop, stalled, ctx, &stall->timer);
}

void install_stall_done(struct install_stall *stall)
{
    loop_timer_free(stall->timer);
}

uint64_t install_stall_least_bytes(const struct install_stall *stall)
{
    return (uint64_t)stall->timeout_ms * INSTALL_LEAST_BYTES_PER_SECOND / 1000;
}

void install_stall_note(struct install_stall *stall, bool pulling, uint64_t bytes)
{
    if (stall->timeout_ms == 0)
        return;
    if (!pulling) {
        loop_timer_disarm(stall->timer);
    } else if (!stall->pulling ||
               bytes >= stall->mark_bytes + install_stall_least_bytes(stall)) {
        stall->mark_bytes = bytes;
        loop_timer_arm(stall->timer, stall->timeout_ms);
    }
    stall->pulling = pulling;
}
