/* test_standstill.c - a clock that stands still until an answer is sent. Here it is the test's
 * own: standstill.c is linked in, as it is preloaded elsewhere. */
#include "standstill.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "unit.h"

#define NS_A_MS 1000000

static int64_t shown_ns(void)
{
    struct timespec time;

    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &time), 0);
    return (int64_t)time.tv_sec * 1000 * NS_A_MS + time.tv_nsec;
}

/* The kernel's own. */
static int64_t real_ns(void)
{
    struct timespec time;

    ck_assert_int_eq((int)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time), 0);
    return (int64_t)time.tv_sec * 1000 * NS_A_MS + time.tv_nsec;
}

static void let_pass(int64_t ms)
{
    const int64_t end = real_ns() + ms * NS_A_MS;

    while (real_ns() < end)
        ;
}

static void say(int fd)
{
    struct iovec part = { .iov_base = "x", .iov_len = 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    ck_assert_int_eq((int)sendmsg(fd, &message, 0), 1);
}

START_TEST(test_goes_by_itself)
{
    int64_t before = real_ns(), shown = shown_ns();

    ck_assert_int_le(before, shown);
    ck_assert_int_le(shown, real_ns());
}
END_TEST

/* Behind by just the time that it stood, and never before what it showed. */
START_TEST(test_until_the_answer)
{
    int answer[2], other[2];
    int64_t begun, still, behind;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, answer), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    begun = real_ns();
    standstill_begin(answer[0]);
    still = shown_ns();
    ck_assert_int_ge(still, begun);
    let_pass(5);
    say(other[0]);
    ck_assert_int_eq(shown_ns(), still);
    say(answer[0]);
    ck_assert_int_ge(shown_ns(), still);
    behind = real_ns() - shown_ns();
    ck_assert_int_ge(behind, 5 * NS_A_MS);
    let_pass(5);
    ck_assert_int_ge(shown_ns(), still + 5 * NS_A_MS);
    say(answer[0]); /* once */
    ck_assert_int_ge(shown_ns(), still + 5 * NS_A_MS);
}
END_TEST

START_TEST(test_no_answer)
{
    int64_t still;

    standstill_begin(1000);
    still = shown_ns();
    let_pass(STANDSTILL_MAX_MS + 1);
    ck_assert_int_ge(shown_ns(), still);
    ck_assert_int_lt(shown_ns(), still + STANDSTILL_MAX_MS * NS_A_MS);
    let_pass(5);
    ck_assert_int_ge(shown_ns(), still + 5 * NS_A_MS);
}
END_TEST

START_TEST(test_other_clocks_go)
{
    struct timespec before, after;

    standstill_begin(1000);
    ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &before), 0);
    let_pass(2);
    ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &after), 0);
    ck_assert(after.tv_sec > before.tv_sec || after.tv_nsec >= before.tv_nsec + NS_A_MS);
    errno = 0;
    ck_assert_int_eq(clock_gettime((clockid_t)9999, &after), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

static _Atomic bool finished;
static _Atomic int backwards;

static void *watch(void *unused)
{
    int64_t last = 0;

    while (!atomic_load(&finished)) {
        int64_t now = shown_ns();

        if (now < last)
            atomic_fetch_add(&backwards, 1);
        last = now;
    }
    return unused;
}

static const int64_t standing_ms[] = { 20, STANDSTILL_MAX_MS + 20 };

/* Whoever ends it: for nobody does it go backwards. */
START_TEST(test_threads)
{
    pthread_t threads[4];
    int answer[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, answer), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, watch, NULL), 0);
    standstill_begin(answer[0]);
    let_pass(standing_ms[_i]);
    say(answer[0]);
    let_pass(20);
    atomic_store(&finished, true);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(atomic_load(&backwards), 0);
}
END_TEST

UNIT_MAIN_ROWS("qemu_standstill", UNIT_TEST(test_goes_by_itself),
               UNIT_TEST(test_until_the_answer), UNIT_TEST(test_no_answer),
               UNIT_TEST(test_other_clocks_go), UNIT_ROWS(test_threads, standing_ms))
