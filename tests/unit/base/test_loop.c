/* test_loop.c - notices, descriptors and timers; freeing each from its own callback. */
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "turn.h"
#include "unit.h"

static struct loop *loop;
static char order[64]; /* what ran, a letter each */

static void setup(void)
{
    ck_assert_int_eq(loop_new(&loop), 0);
    order[0] = 0;
}

static void note(const char *letter)
{
    (void)strncat(order, letter, sizeof(order) - strlen(order) - 1);
}

static void note_letter(void *ctx)
{
    note(ctx);
}

START_TEST(test_post_is_fifo_and_next_turn)
{
    setup();
    ck_assert_int_eq(loop_post(loop, note_letter, "a"), 0);
    ck_assert_int_eq(loop_post(loop, note_letter, "b"), 0);
    ck_assert_str_eq(order, "");
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_str_eq(order, "ab");
    ck_assert_int_eq(loop_post(loop, note_letter, "c"), 0); /* dropped, not leaked */
    loop_free(loop);
    ck_assert_str_eq(order, "ab");
}
END_TEST

static void *post_from_thread(void *unused)
{
    for (int i = 0; i < 1000; i++)
        (void)loop_post(loop, note_letter, "");
    (void)loop_post(loop, note_letter, "t");
    return NULL;
}

START_TEST(test_post_wakes_from_threads)
{
    pthread_t threads[4];

    setup();
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, post_from_thread, NULL), 0);
    while (strlen(order) < 4)
        ck_assert_int_eq(loop_turn(loop, -1), 0); /* sleeps for ever if a wake-up is lost */
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_str_eq(order, "tttt");
    loop_free(loop);
}
END_TEST

static struct loop_notice first, second;

static void cancel_second(void *ctx)
{
    note("1");
    loop_notice_cancel(loop, &second);
}

START_TEST(test_notices)
{
    setup();
    loop_notice_init(&first, cancel_second, NULL);
    loop_notice_init(&second, note_letter, "2");
    loop_notify(loop, &first);
    loop_notify(loop, &first); /* queued once */
    loop_notify(loop, &second);
    ck_assert_int_eq(loop_turn(loop, 0), 0);
    ck_assert_str_eq(order, "1"); /* the second was collected and cancelled */
    loop_notify(loop, &second);
    ck_assert_int_eq(loop_turn(loop, 0), 0);
    ck_assert_str_eq(order, "12");
    loop_free(loop);
}
END_TEST

static struct loop_notice deferred;

static void defer_again(void *ctx)
{
    note("d");
    if (strlen(order) < 3)
        loop_defer(loop, &deferred);
}

static void defer_it(void *ctx)
{
    note("p");
    loop_defer(loop, &deferred);
    loop_defer(loop, &deferred);
}

START_TEST(test_deferred_runs_before_the_wait)
{
    setup();
    loop_notice_init(&deferred, defer_again, NULL);
    ck_assert_int_eq(loop_post(loop, defer_it, NULL), 0);
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_str_eq(order, "pd");
    ck_assert_int_eq(loop_turn(loop, -1),
                     0); /* does not sleep on what was deferred meanwhile */
    ck_assert_str_eq(order, "pdd");
    loop_free(loop);
}
END_TEST

static void stop_with_seven(void *ctx)
{
    loop_stop(loop, 7);
}

START_TEST(test_run_and_stop)
{
    setup();
    ck_assert_int_eq(loop_post(loop, stop_with_seven, NULL), 0);
    ck_assert_int_eq(loop_run(loop), 7);
    loop_stop(loop, 9); /* before the run */
    ck_assert_int_eq(loop_run(loop), 9);
    ck_assert_int_eq(loop_post(loop, stop_with_seven, NULL), 0);
    ck_assert_int_eq(loop_run(loop), 7);
    loop_free(loop);
}
END_TEST

/* Timers. They count from their arming, which takes time too on a busy machine: the clock
 * stands still meanwhile, so that the plan alone says what is due first. */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static struct timespec held; /* zero: the clock runs */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_MONOTONIC || held.tv_sec == 0)
        return __real_clock_gettime(clock, time);
    *time = held;
    return 0;
}

static void hold_clock(void)
{
    ck_assert_int_eq(__real_clock_gettime(CLOCK_MONOTONIC, &held), 0);
}

static void let_clock_run(void)
{
    held = (struct timespec){ 0 };
}

static struct loop_timer *timers[3];

static void free_own_timer(void *ctx)
{
    note("f");
    loop_timer_free(take_ptr(timers[0]));
}

static void free_other_timer(void *ctx)
{
    note("o");
    loop_timer_free(take_ptr(timers[2]));
}

static void rearm_at_once(void *ctx)
{
    note("r");
    loop_timer_arm(timers[1], 0);
}

START_TEST(test_timer_order)
{
    static const struct {
        const char *letter;
        uint64_t delay_ms;
    } plan[] = { { "d", 30 }, { "a", 10 }, { "c", 20 }, { "b", 10 }, { "x", 15 }, { "e", 30 } };
    struct loop_timer *all[ARRAY_SIZE(plan)];
    uint64_t start;

    setup();
    start = loop_now_ms(loop);
    hold_clock();
    for (size_t i = 0; i < ARRAY_SIZE(plan); i++) {
        ck_assert_int_eq(loop_timer_new(loop, note_letter, (void *)plan[i].letter, &all[i]), 0);
        ck_assert(!loop_timer_armed(all[i]));
        loop_timer_arm(all[i], plan[i].delay_ms);
        ck_assert(loop_timer_armed(all[i]));
    }
    loop_timer_disarm(all[4]);
    loop_timer_disarm(all[4]);
    let_clock_run();
    TURN_UNTIL(loop, strlen(order) == 5);
    ck_assert_str_eq(order, "abcde");
    ck_assert_uint_ge(loop_now_ms(loop), start + 30);
    for (size_t i = 0; i < ARRAY_SIZE(plan); i++) {
        ck_assert(!loop_timer_armed(all[i]));
        loop_timer_free(all[i]);
    }
    loop_free(loop);
}
END_TEST

START_TEST(test_timer_frees)
{
    setup();
    ck_assert_int_eq(loop_timer_new(loop, free_own_timer, NULL, &timers[0]), 0);
    ck_assert_int_eq(loop_timer_new(loop, free_other_timer, NULL, &timers[1]), 0);
    ck_assert_int_eq(loop_timer_new(loop, note_letter, "x", &timers[2]), 0);
    hold_clock();
    for (size_t i = 0; i < 3; i++)
        loop_timer_arm(timers[i], 1);
    let_clock_run();
    TURN_UNTIL(loop, order[0]);
    ck_assert_str_eq(order, "fo"); /* the third was due in the same turn */
    loop_timer_free(timers[1]);
    loop_free(loop);
}
END_TEST

START_TEST(test_timer_rearming)
{
    setup();
    ck_assert_int_eq(loop_timer_new(loop, rearm_at_once, NULL, &timers[1]), 0);
    loop_timer_arm(timers[1], 0);
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_str_eq(order, "r"); /* once a turn, so that the rest gets its share */
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_str_eq(order, "rr");
    loop_timer_arm(timers[1], UINT64_MAX); /* replaces, and does not overflow */
    turn_for(loop, 5);
    ck_assert_str_eq(order, "rr");
    loop_timer_free(timers[1]);
    loop_free(loop);
}
END_TEST

/* A heap of random deadlines, a third of them disarmed or moved, fires in order. */
#define MANY 2000
static uint64_t delays[MANY];
static uint64_t latest_delay;
static size_t fired;

static void check_delay(void *ctx)
{
    uint64_t delay = *(uint64_t *)ctx;

    if (delay < latest_delay)
        ck_abort_msg("%lu after %lu", (unsigned long)delay, (unsigned long)latest_delay);
    latest_delay = delay;
    fired++;
}

START_TEST(test_timer_heap)
{
    static struct loop_timer *all[MANY];
    size_t expected = MANY;
    uint32_t random = 7;

    setup();
    for (size_t i = 0; i < MANY; i++)
        ck_assert_int_eq(loop_timer_new(loop, check_delay, &delays[i], &all[i]), 0);
    hold_clock();
    for (size_t i = 0; i < 2 * MANY; i++) {
        random = random * 1664525u + 1013904223u;
        delays[i % MANY] = (random >> 16) % 4 * 40;
        loop_timer_arm(all[i % MANY], delays[i % MANY]);
    }
    for (size_t i = 0; i < MANY; i += 3, expected--)
        loop_timer_disarm(all[i]);
    let_clock_run();
    TURN_UNTIL(loop, fired == expected);
    for (size_t i = 0; i < MANY; i++)
        loop_timer_free(all[i]);
    loop_free(loop);
}
END_TEST

/* Descriptors. */

struct watched {
    int fds[2];
    struct loop_io *io;
    unsigned calls;
    uint32_t events;
    struct watched *frees; /* by its callback */
};

static void on_io(void *ctx, uint32_t events)
{
    struct watched *watched = ctx;

    watched->calls++;
    watched->events = events;
    if (watched->frees)
        loop_io_free(take_ptr(watched->frees->io));
}

static void watched_open(struct watched *watched, uint32_t events)
{
    *watched = (struct watched){ .io = NULL };
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, watched->fds), 0);
    ck_assert_int_eq(loop_io_new(loop, watched->fds[0], events, on_io, watched, &watched->io),
                     0);
}

static void watched_close(struct watched *watched)
{
    loop_io_free(watched->io);
    closep(&watched->fds[0]);
    closep(&watched->fds[1]);
}

START_TEST(test_io_events)
{
    struct watched watched;

    setup();
    watched_open(&watched, EPOLLIN);
    ck_assert_int_eq(loop_turn(loop, 0), 0);
    ck_assert_uint_eq(watched.calls, 0);
    ck_assert_int_eq(write(watched.fds[1], "x", 1), 1);
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_int_eq(loop_turn(loop, -1), 0); /* level-triggered */
    ck_assert_uint_eq(watched.calls, 2);
    ck_assert_uint_eq(watched.events, EPOLLIN);
    ck_assert_int_eq(loop_io_set_events(watched.io, EPOLLOUT), 0);
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_uint_eq(watched.events, EPOLLOUT);
    closep(&watched.fds[1]);
    ck_assert_int_eq(loop_io_set_events(watched.io, 0), 0);
    ck_assert_int_eq(loop_turn(loop, 0), 0); /* hung up, and quiet */
    ck_assert_uint_eq(watched.calls, 3);
    ck_assert_int_eq(loop_io_set_events(watched.io, EPOLLIN), 0);
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_uint_eq(watched.events, EPOLLIN | EPOLLHUP);
    watched_close(&watched);
    loop_free(loop);
}
END_TEST

START_TEST(test_io_frees)
{
    struct watched a, b;

    setup();
    watched_open(&a, EPOLLIN); /* both ready in one turn: whoever comes first frees both */
    watched_open(&b, EPOLLIN);
    a.frees = &b;
    b.frees = &a;
    ck_assert_int_eq(write(a.fds[1], "x", 1), 1);
    ck_assert_int_eq(write(b.fds[1], "x", 1), 1);
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_uint_eq(a.calls + b.calls, 1);
    watched_close(&a);
    watched_close(&b);

    watched_open(&a, EPOLLIN);
    a.frees = &a;
    ck_assert_int_eq(write(a.fds[1], "x", 1), 1);
    ck_assert_int_eq(loop_turn(loop, -1), 0);
    ck_assert_uint_eq(a.calls, 1);
    watched_close(&a);
    loop_free(loop);
}
END_TEST

START_TEST(test_io_refusals)
{
    struct loop_io *io = NULL;

    setup();
    ck_assert_int_eq(loop_io_new(loop, -1, EPOLLIN, on_io, NULL, &io), -EBADF);
    ck_assert_ptr_null(io);
    loop_io_free(NULL);
    loop_free(loop);
}
END_TEST

UNIT_MAIN("loop", test_post_is_fifo_and_next_turn, test_post_wakes_from_threads, test_notices,
          test_deferred_runs_before_the_wait, test_run_and_stop, test_timer_order,
          test_timer_frees, test_timer_rearming, test_timer_heap, test_io_events, test_io_frees,
          test_io_refusals)
