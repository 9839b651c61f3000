/* test_idle.c - the arithmetic of contract 10. */
#include "idle.h"
#include "unit.h"

START_TEST(test_activity_alone)
{
    ck_assert_uint_eq(idle_secs(10000, 10000, -1), 0);
    ck_assert_uint_eq(idle_secs(10999, 10000, -1), 0);
    ck_assert_uint_eq(idle_secs(11000, 10000, -1), 1);
    ck_assert_uint_eq(idle_secs(10000, 20000, -1), 0);
}
END_TEST

START_TEST(test_the_later_of_activity_and_payload_counts)
{
    ck_assert_uint_eq(idle_secs(100000, 50000, 90), 10);
    ck_assert_uint_eq(idle_secs(100000, 95000, 90), 5);
    ck_assert_uint_eq(idle_secs(100000, 0, 101), 0);
    ck_assert_uint_eq(idle_secs(100000, 0, 0), 100);
}
END_TEST

START_TEST(test_limit)
{
    ck_assert_uint_eq(idle_limit_secs(300, 0, 300000), 300);
    ck_assert_uint_eq(idle_limit_secs(300, 1, 300000), 300 + 300 + 60);
    ck_assert_uint_eq(idle_limit_secs(0, 2, 1500), 2 + 60);
    ck_assert_uint_eq(idle_limit_secs(0, 1, 0), 1 + 60);
    ck_assert_uint_eq(idle_limit_secs(0, 1, 1000), 1 + 60);
}
END_TEST

START_TEST(test_limit_saturates)
{
    ck_assert_uint_eq(idle_limit_secs(UINT64_MAX, 0, 1), UINT64_MAX);
    ck_assert_uint_eq(idle_limit_secs(UINT64_MAX, 1, 1), UINT64_MAX);
    ck_assert_uint_eq(idle_limit_secs(UINT64_MAX - 61, 1, UINT64_MAX), UINT64_MAX);
}
END_TEST

START_TEST(test_over_is_strict)
{
    ck_assert(!idle_is_over(300, 300));
    ck_assert(idle_is_over(301, 300));
    ck_assert(!idle_is_over(0, 0));
    ck_assert(!idle_is_over(UINT64_MAX, UINT64_MAX));
}
END_TEST

UNIT_MAIN("idle", test_activity_alone, test_the_later_of_activity_and_payload_counts,
          test_limit, test_limit_saturates, test_over_is_strict)
