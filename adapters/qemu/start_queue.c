/* start_queue.c - see start_queue.h. */
#include "start_queue.h"

#include <assert.h>
#include <unistd.h>

#include "log.h"

static const char *const rank_names[] = {
    [START_CALLER] = "caller",
    [START_SETTLE] = "settle",
    [START_REFILL] = "refill",
};
static_assert(ARRAY_SIZE(rank_names) == START_RANK_MAX, "a name for each rank");

static void turn_set_state(struct start_turn *turn, enum start_turn_state state)
{
    static const unsigned moves[] = {
        [START_TURN_NONE] = 1u << START_TURN_WAITING,
        [START_TURN_WAITING] = 1u << START_TURN_HELD | 1u << START_TURN_NONE,
        [START_TURN_HELD] = 1u << START_TURN_NONE,
    };
    static_assert(ARRAY_SIZE(moves) == START_TURN_STATE_MAX, "moves of each state");

    assert(moves[turn->state] & 1u << state);
    turn->state = state;
}

/* Turns of lower ranks do not count. */
static bool queue_has_room(const struct start_queue *queue, enum start_rank rank)
{
    unsigned held = 0;

    for (unsigned i = 0; i <= rank; i++)
        held += queue->held_count[i];
    return held < queue->limit;
}

static void queue_arm(struct start_queue *queue)
{
    uint64_t now_ms = loop_now_ms(queue->loop), first_ms = UINT64_MAX;

    LIST_FOREACH(node, &queue->held)
    {
        const struct start_turn *turn = LIST_ENTRY(node, struct start_turn, node);

        if (turn->until_ms < first_ms)
            first_ms = turn->until_ms;
    }
    if (first_ms == UINT64_MAX)
        loop_timer_disarm(queue->timer);
    else
        loop_timer_arm(queue->timer, first_ms > now_ms ? first_ms - now_ms : 0);
}

static void turn_hold(struct start_turn *turn)
{
    struct start_queue *queue = turn->queue;

    turn_set_state(turn, START_TURN_HELD);
    turn->until_ms = loop_now_ms(queue->loop) + turn->hold_ms;
    list_append(&queue->held, &turn->node);
    queue->held_count[turn->rank]++;
    queue_arm(queue);
}

/* Whoever has waited longest, of the highest rank that has room. */
static void queue_go_on(struct start_queue *queue)
{
    for (enum start_rank rank = 0; rank < START_RANK_MAX; rank++) {
        while (!list_empty(&queue->waiting[rank]) && queue_has_room(queue, rank)) {
            struct list *node = list_pop(&queue->waiting[rank]);
            struct start_turn *turn = LIST_ENTRY(node, struct start_turn, node);

            turn_hold(turn);
            loop_defer(queue->loop, &turn->come);
        }
    }
}

static void turn_end(struct start_turn *turn)
{
    struct start_queue *queue = turn->queue;

    list_remove(&turn->node);
    if (turn->state == START_TURN_HELD)
        queue->held_count[turn->rank]--;
    turn_set_state(turn, START_TURN_NONE);
}

static void on_overdue(void *ctx)
{
    struct start_queue *queue = ctx;
    const uint64_t now_ms = loop_now_ms(queue->loop);

    LIST_FOREACH(node, &queue->held)
    {
        struct start_turn *turn = LIST_ENTRY(node, struct start_turn, node);

        if (turn->until_ms > now_ms)
            continue;
        log_event(LOG_WARN, "start_overdue", log_text("vm", turn->name),
                  log_text("rank", rank_names[turn->rank]), log_uint("ms", turn->hold_ms));
        turn_end(turn);
    }
    queue_go_on(queue);
    queue_arm(queue);
}

unsigned start_queue_limit(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    return processors > 1 ? (unsigned)processors : 1;
}

int start_queue_init(struct start_queue *queue, struct loop *loop, unsigned limit)
{
    *queue = (struct start_queue){ .loop = loop, .limit = limit };
    for (size_t i = 0; i < START_RANK_MAX; i++)
        list_init(&queue->waiting[i]);
    list_init(&queue->held);
    return loop_timer_new(loop, on_overdue, queue, &queue->timer);
}

void start_queue_done(struct start_queue *queue)
{
    loop_timer_free(take_ptr(queue->timer));
}

void start_turn_init(struct start_turn *turn, struct start_queue *queue, const char *name,
                     void (*fn)(void *ctx), void *ctx)
{
    *turn = (struct start_turn){ .queue = queue, .name = name };
    list_init(&turn->node);
    loop_notice_init(&turn->come, fn, ctx);
}

bool start_turn_take(struct start_turn *turn, enum start_rank rank, uint32_t hold_ms)
{
    struct start_queue *queue = turn->queue;

    turn->hold_ms = hold_ms;
    if (turn->state == START_TURN_HELD) {
        turn->until_ms = loop_now_ms(queue->loop) + hold_ms;
        queue_arm(queue);
        return true;
    }
    if (turn->state == START_TURN_WAITING)
        return false;
    turn->rank = rank;
    turn_set_state(turn, START_TURN_WAITING);
    if (!list_empty(&queue->waiting[rank]) || !queue_has_room(queue, rank)) {
        list_append(&queue->waiting[rank], &turn->node);
        return false;
    }
    turn_hold(turn);
    return true;
}

void start_turn_ask(struct start_turn *turn, enum start_rank rank, uint32_t hold_ms)
{
    if (start_turn_take(turn, rank, hold_ms))
        loop_defer(turn->queue->loop, &turn->come);
}

void start_turn_give(struct start_turn *turn)
{
    struct start_queue *queue = turn->queue;

    loop_notice_cancel(queue->loop, &turn->come);
    if (turn->state == START_TURN_NONE)
        return;
    turn_end(turn);
    queue_go_on(queue);
    queue_arm(queue);
}
