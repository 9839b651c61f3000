/* loop_timer.c - armed timers in a binary heap, ordered by deadline, then by arming. */
#include <errno.h>
#include <limits.h>

#include "loop.h"
#include "loop_state.h"

#define TIMER_DISARMED SIZE_MAX
#define NS_A_MS 1000000u

struct loop_timer {
    struct loop *loop;
    uint64_t deadline_ns;
    uint64_t sequence; /* keeps equal deadlines in the order of arming */
    size_t index;      /* in the heap, or TIMER_DISARMED */
    loop_timer_fn fn;
    void *ctx;
};

static bool timer_before(const struct loop_timer *a, const struct loop_timer *b)
{
    if (a->deadline_ns != b->deadline_ns)
        return a->deadline_ns < b->deadline_ns;
    return a->sequence < b->sequence;
}

static void heap_put(struct loop *loop, struct loop_timer *timer, size_t index)
{
    loop->heap[index] = timer;
    timer->index = index;
}

/* Moves TIMER from the hole at INDEX to where it belongs. */
static void heap_settle(struct loop *loop, struct loop_timer *timer, size_t index)
{
    while (index > 0 && timer_before(timer, loop->heap[(index - 1) / 2])) {
        heap_put(loop, loop->heap[(index - 1) / 2], index);
        index = (index - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * index + 1;

        if (child + 1 < loop->heap_count &&
            timer_before(loop->heap[child + 1], loop->heap[child]))
            child++;
        if (child >= loop->heap_count || !timer_before(loop->heap[child], timer))
            break;
        heap_put(loop, loop->heap[child], index);
        index = child;
    }
    heap_put(loop, timer, index);
}

int loop_timer_new(struct loop *loop, loop_timer_fn fn, void *ctx,
                   struct loop_timer **ret_timer)
{
    struct loop_timer *timer;

    if (loop->timer_count == loop->heap_capacity) {
        size_t capacity = loop->heap_capacity ? loop->heap_capacity * 2 : 16;
        struct loop_timer **heap = realloc(loop->heap, capacity * sizeof(*heap));

        if (!heap)
            return -ENOMEM;
        loop->heap = heap;
        loop->heap_capacity = capacity;
    }
    timer = calloc(1, sizeof(*timer));
    if (!timer)
        return -ENOMEM;
    *timer = (struct loop_timer){ .loop = loop, .index = TIMER_DISARMED, .fn = fn, .ctx = ctx };
    loop->timer_count++;
    *ret_timer = timer;
    return 0;
}

void loop_timer_arm(struct loop_timer *timer, uint64_t delay_ms)
{
    struct loop *loop = timer->loop;
    uint64_t delay_ns;
    size_t index = timer->index;

    if (__builtin_mul_overflow(delay_ms, (uint64_t)NS_A_MS, &delay_ns) ||
        __builtin_add_overflow(loop_clock_ns(), delay_ns, &timer->deadline_ns))
        timer->deadline_ns = UINT64_MAX;
    timer->sequence = ++loop->timer_sequence;
    if (index == TIMER_DISARMED)
        index = loop->heap_count++;
    heap_settle(loop, timer, index);
}

void loop_timer_disarm(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;
    struct loop_timer *last;

    if (timer->index == TIMER_DISARMED)
        return;
    last = loop->heap[--loop->heap_count];
    if (last != timer)
        heap_settle(loop, last, timer->index);
    timer->index = TIMER_DISARMED;
}

bool loop_timer_armed(const struct loop_timer *timer)
{
    return timer->index != TIMER_DISARMED;
}

void loop_timer_free(struct loop_timer *timer)
{
    if (!timer)
        return;
    loop_timer_disarm(timer);
    timer->loop->timer_count--;
    free(timer);
}

int loop_timers_timeout_ms(const struct loop *loop)
{
    uint64_t now_ns, wait_ms;

    if (loop->heap_count == 0)
        return -1;
    now_ns = loop_clock_ns();
    if (loop->heap[0]->deadline_ns <= now_ns)
        return 0;
    wait_ms = (loop->heap[0]->deadline_ns - now_ns + NS_A_MS - 1) / NS_A_MS;
    return wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

void loop_timers_dispatch(struct loop *loop)
{
    uint64_t latest = loop->timer_sequence; /* armed by a callback of this turn: not now */

    while (loop->heap_count > 0) {
        struct loop_timer *timer = loop->heap[0];

        if (timer->deadline_ns > loop->now_ns || timer->sequence > latest)
            return;
        loop_timer_disarm(timer);
        timer->fn(timer->ctx);
    }
}
