/* keep_alive.c - see keep_alive.h. */
#include "keep_alive.h"

#include <stdbool.h>

void keep_alive_start(struct keep_alive *keep_alive, uint64_t now_ms)
{
    keep_alive->due_ms = now_ms + keep_alive->interval_ms;
    keep_alive_heard(keep_alive, now_ms);
}

void keep_alive_heard(struct keep_alive *keep_alive, uint64_t now_ms)
{
    keep_alive->heard_ms = now_ms;
    keep_alive->asked = 0;
}

/* A tick that comes late ends no span: the answer may lie there, as it was not yet looked for.
 * Once only, so that a machine that is always late finds out too. */
static bool is_lost(const struct keep_alive *keep_alive, uint64_t now_ms)
{
    unsigned spans = keep_alive->asked + 1;
    bool late = now_ms >= keep_alive->due_ms + keep_alive->interval_ms / 2;

    return spans > keep_alive->spans_max || (spans == keep_alive->spans_max && !late);
}

static enum keep_alive_verdict judge(struct keep_alive *keep_alive, uint64_t now_ms,
                                     uint32_t *ret_delay_ms)
{
    uint64_t silent_ms = now_ms - keep_alive->heard_ms;

    *ret_delay_ms = keep_alive->interval_ms;
    if (silent_ms < keep_alive->interval_ms) {
        *ret_delay_ms -= (uint32_t)silent_ms;
        return KEEP_ALIVE_WAIT;
    }
    if (is_lost(keep_alive, now_ms))
        return KEEP_ALIVE_LOST;
    keep_alive->asked++;
    return KEEP_ALIVE_ASK;
}

enum keep_alive_verdict keep_alive_tick(struct keep_alive *keep_alive, uint64_t now_ms,
                                        uint32_t *ret_delay_ms)
{
    enum keep_alive_verdict verdict = judge(keep_alive, now_ms, ret_delay_ms);

    keep_alive->due_ms = now_ms + *ret_delay_ms;
    return verdict;
}
