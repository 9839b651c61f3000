/* relay_timer.c - see relay_timer.h. */
#include "relay_timer.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>

#define NS_A_SECOND 1000000000
#define NS_A_MS 1000000

int64_t relay_clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_A_SECOND + now.tv_nsec;
}

struct relay_timer *relay_timer_new(struct list *timers, void (*fn)(void *ctx), void *ctx)
{
    struct relay_timer *timer = malloc(sizeof(*timer));

    if (!timer)
        return NULL;
    *timer = (struct relay_timer){ .fn = fn, .ctx = ctx, .at_ms = INT64_MAX };
    list_append(timers, &timer->node);
    return timer;
}

void relay_timer_free(struct relay_timer *timer)
{
    if (!timer)
        return;
    list_remove(&timer->node);
    free(timer);
}

int relay_timers_wait_ms(const struct list *timers)
{
    int64_t first = INT64_MAX, now_ms = relay_clock_ns() / NS_A_MS;

    LIST_FOREACH(node, timers)
    {
        const struct relay_timer *timer = LIST_ENTRY(node, struct relay_timer, node);

        if (timer->at_ms < first)
            first = timer->at_ms;
    }
    if (first == INT64_MAX)
        return -1;
    return first <= now_ms ? 0 : first - now_ms > INT_MAX ? INT_MAX : (int)(first - now_ms);
}

void relay_timers_run(struct list *timers)
{
    int64_t now_ms = relay_clock_ns() / NS_A_MS;

    LIST_FOREACH(node, timers)
    {
        struct relay_timer *timer = LIST_ENTRY(node, struct relay_timer, node);

        if (timer->at_ms > now_ms)
            continue;
        timer->at_ms = INT64_MAX;
        timer->fn(timer->ctx);
    }
}
