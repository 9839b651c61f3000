/* idle.c - see idle.h. */
#include "idle.h"

#define LEAKED_SLOT_GRACE_SECS 60u

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t idle_secs(uint64_t now_ms, uint64_t active_ms, int64_t payload_secs)
{
    uint64_t since_active = now_ms > active_ms ? (now_ms - active_ms) / 1000 : 0;
    uint64_t now_secs = now_ms / 1000;
    uint64_t since_payload;

    if (payload_secs < 0)
        return since_active;
    since_payload = now_secs > (uint64_t)payload_secs ? now_secs - (uint64_t)payload_secs : 0;
    return since_active < since_payload ? since_active : since_payload;
}

uint64_t idle_limit_secs(uint64_t idle_timeout_secs, uint32_t execs,
                         uint64_t max_exec_timeout_ms)
{
    uint64_t timeout_ms = max_exec_timeout_ms > 0 ? max_exec_timeout_ms : 1;
    uint64_t timeout_secs = timeout_ms / 1000 + (timeout_ms % 1000 > 0);

    if (execs == 0)
        return idle_timeout_secs;
    return add_saturating(add_saturating(idle_timeout_secs, timeout_secs),
                          LEAKED_SLOT_GRACE_SECS);
}

bool idle_is_over(uint64_t idle, uint64_t limit)
{
    return idle > limit;
}
