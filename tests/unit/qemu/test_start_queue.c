/* test_start_queue.c - whose turn it is, and how each turn ends. */
#include "start_queue.h"

#include "turn.h"
#include "unit.h"

#define LONG_MS 60000u
#define TURNS 6

static struct loop *loop;
static struct start_queue queue;
static struct start_turn turns[TURNS];
static unsigned order[TURNS], came; /* in which they came */

static void on_turn(void *ctx)
{
    ck_assert_uint_lt(came, TURNS);
    order[came++] = (unsigned)((struct start_turn *)ctx - turns);
}

static void begin(unsigned limit)
{
    came = 0;
    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(start_queue_init(&queue, loop, limit), 0);
    for (size_t i = 0; i < TURNS; i++)
        start_turn_init(&turns[i], &queue, "a machine", on_turn, &turns[i]);
}

static void end(void)
{
    for (size_t i = 0; i < TURNS; i++)
        start_turn_give(&turns[i]);
    for (size_t i = 0; i < START_RANK_MAX; i++) {
        ck_assert(list_empty(&queue.waiting[i]));
        ck_assert_uint_eq(queue.held_count[i], 0);
    }
    start_queue_done(&queue);
    loop_free(loop);
}

static bool take(unsigned turn, enum start_rank rank)
{
    return start_turn_take(&turns[turn], rank, LONG_MS);
}

START_TEST(first_come_first_served)
{
    begin(2);
    ck_assert(take(0, START_CALLER));
    ck_assert(take(1, START_CALLER));
    ck_assert(!take(2, START_CALLER));
    ck_assert(!take(3, START_CALLER));
    ck_assert(!take(2, START_CALLER)); /* asking again changes no place */
    turn_for(loop, 5);
    ck_assert_uint_eq(came, 0);
    start_turn_give(&turns[1]);
    ck_assert_uint_eq(came, 0); /* never from inside the call */
    TURN_UNTIL(loop, came == 1);
    ck_assert_uint_eq(order[0], 2);
    start_turn_give(&turns[0]);
    TURN_UNTIL(loop, came == 2);
    ck_assert_uint_eq(order[1], 3);
    ck_assert(take(3, START_CALLER)); /* it has it */
    end();
}
END_TEST

START_TEST(nobody_overtakes_who_waits)
{
    begin(1);
    ck_assert(take(0, START_CALLER));
    ck_assert(!take(1, START_CALLER));
    start_turn_give(&turns[0]);
    ck_assert(!take(2, START_CALLER)); /* the place is 1's, though it does not know yet */
    TURN_UNTIL(loop, came == 1);
    ck_assert_uint_eq(order[0], 1);
    end();
}
END_TEST

START_TEST(whoever_leaves_the_line_is_not_called)
{
    begin(1);
    ck_assert(take(0, START_CALLER));
    ck_assert(!take(1, START_CALLER));
    ck_assert(!take(2, START_CALLER));
    ck_assert(!take(3, START_CALLER));
    start_turn_give(&turns[1]); /* waits */
    start_turn_give(&turns[0]);
    start_turn_give(&turns[2]); /* its turn has come, and it was not told yet */
    TURN_UNTIL(loop, came == 1);
    turn_for(loop, 5);
    ck_assert_uint_eq(came, 1);
    ck_assert_uint_eq(order[0], 3);
    start_turn_give(&turns[1]); /* twice is once */
    end();
}
END_TEST

START_TEST(callers_go_first)
{
    begin(1);
    ck_assert(take(0, START_CALLER));
    ck_assert(!take(1, START_REFILL));
    ck_assert(!take(2, START_SETTLE));
    ck_assert(!take(3, START_CALLER));
    start_turn_give(&turns[0]);
    TURN_UNTIL(loop, came == 1);
    start_turn_give(&turns[3]);
    TURN_UNTIL(loop, came == 2);
    start_turn_give(&turns[2]);
    TURN_UNTIL(loop, came == 3);
    ck_assert_uint_eq(order[0], 3);
    ck_assert_uint_eq(order[1], 2);
    ck_assert_uint_eq(order[2], 1);
    end();
}
END_TEST

START_TEST(callers_wait_for_callers_alone)
{
    begin(1);
    ck_assert(take(0, START_REFILL));
    ck_assert(take(1, START_SETTLE));
    ck_assert(take(2, START_CALLER));
    ck_assert(!take(3, START_CALLER));
    start_turn_give(&turns[0]);
    start_turn_give(&turns[1]);
    turn_for(loop, 5);
    ck_assert_uint_eq(came, 0);
    end();
}
END_TEST

START_TEST(a_wedged_start_keeps_nobody)
{
    begin(1);
    ck_assert(start_turn_take(&turns[0], START_CALLER, 50));
    ck_assert(!take(1, START_CALLER));
    turn_for(loop, 20);
    ck_assert_uint_eq(came, 0);
    TURN_UNTIL(loop, came == 1);
    ck_assert_uint_eq(order[0], 1);
    ck_assert_int_eq(turns[0].state, START_TURN_NONE);
    start_turn_give(&turns[0]); /* what it has no more is not given back twice */
    ck_assert(!take(2, START_CALLER));
    end();
}
END_TEST

START_TEST(a_turn_can_be_prolonged)
{
    begin(1);
    ck_assert(start_turn_take(&turns[0], START_CALLER, 30));
    ck_assert(take(0, START_CALLER));
    ck_assert(!take(1, START_CALLER));
    turn_for(loop, 100);
    ck_assert_uint_eq(came, 0);
    end();
}
END_TEST

START_TEST(asking_always_calls)
{
    begin(1);
    start_turn_ask(&turns[0], START_SETTLE, LONG_MS);
    start_turn_ask(&turns[1], START_SETTLE, LONG_MS);
    ck_assert_uint_eq(came, 0);
    TURN_UNTIL(loop, came == 1);
    ck_assert_uint_eq(order[0], 0);
    start_turn_give(&turns[0]);
    TURN_UNTIL(loop, came == 2);
    ck_assert_uint_eq(order[1], 1);
    end();
}
END_TEST

START_TEST(a_machine_without_processors_starts_one)
{
    ck_assert_uint_ge(start_queue_limit(), 1);
}
END_TEST

UNIT_MAIN("start_queue", first_come_first_served, nobody_overtakes_who_waits,
          whoever_leaves_the_line_is_not_called, callers_go_first,
          callers_wait_for_callers_alone, a_wedged_start_keeps_nobody, a_turn_can_be_prolonged,
          asking_always_calls, a_machine_without_processors_starts_one)
