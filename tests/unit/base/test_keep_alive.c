/* test_keep_alive.c - when a silent peer is asked, and when it is lost. */
#include "keep_alive.h"

#include "unit.h"

#define INTERVAL_MS 5000u

static struct keep_alive peer;
static uint64_t now_ms, due_ms;

static void begin(void)
{
    peer = (struct keep_alive){ .interval_ms = INTERVAL_MS, .spans_max = 3 };
    now_ms = 1000000;
    due_ms = now_ms + INTERVAL_MS;
    keep_alive_start(&peer, now_ms);
}

/* The timer fires so much later than it was to. */
static enum keep_alive_verdict tick_late(uint64_t late_ms)
{
    enum keep_alive_verdict verdict;
    uint32_t delay_ms = 0;

    now_ms = due_ms + late_ms;
    verdict = keep_alive_tick(&peer, now_ms, &delay_ms);
    ck_assert_uint_gt(delay_ms, 0);
    ck_assert_uint_le(delay_ms, INTERVAL_MS);
    due_ms = now_ms + delay_ms;
    return verdict;
}

START_TEST(test_three_silent_spans)
{
    begin();
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_LOST);
    ck_assert_uint_eq(now_ms, 1000000 + 3 * INTERVAL_MS);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_LOST); /* for who goes on asking */
    keep_alive_heard(&peer, now_ms + 1);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_WAIT);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
}
END_TEST

/* What is heard counts from when it came: it is asked INTERVAL_MS after that. */
START_TEST(test_heard)
{
    begin();
    keep_alive_heard(&peer, now_ms + 2000);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_WAIT);
    ck_assert_uint_eq(due_ms, 1000000 + 2000 + INTERVAL_MS);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
    keep_alive_heard(&peer, now_ms + INTERVAL_MS - 1);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_WAIT);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
    ck_assert_int_eq(tick_late(0), KEEP_ALIVE_LOST);
}
END_TEST

/* However long we were stopped, and whatever had been asked before: what lies unread is read
 * before the next tick. */
START_TEST(test_stopped)
{
    for (unsigned asked = 0; asked < 3; asked++) {
        begin();
        for (unsigned i = 0; i < asked; i++)
            ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
        ck_assert_int_eq(tick_late(3600000), KEEP_ALIVE_ASK);
        keep_alive_heard(&peer, now_ms);
        ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
        ck_assert_int_eq(tick_late(0), KEEP_ALIVE_ASK);
        ck_assert_int_eq(tick_late(0), KEEP_ALIVE_LOST);
    }
}
END_TEST

/* A machine that is always late does not wait for ever. */
START_TEST(test_always_late)
{
    unsigned asked = 0;

    begin();
    while (tick_late(INTERVAL_MS) == KEEP_ALIVE_ASK)
        ck_assert_uint_le(++asked, 3);
    ck_assert_uint_eq(asked, 3);
    begin(); /* a little late is not late */
    ck_assert_int_eq(tick_late(INTERVAL_MS / 4), KEEP_ALIVE_ASK);
    ck_assert_int_eq(tick_late(INTERVAL_MS / 4), KEEP_ALIVE_ASK);
    ck_assert_int_eq(tick_late(INTERVAL_MS / 4), KEEP_ALIVE_LOST);
}
END_TEST

UNIT_MAIN("keep_alive", test_three_silent_spans, test_heard, test_stopped, test_always_late)
