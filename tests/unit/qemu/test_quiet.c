/* test_quiet.c - a process that works is waited for, one that rests is not. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "quiet.h"
#include "turn.h"
#include "unit.h"

static struct loop *loop;
static unsigned came;

static void on_quiet(void *ctx)
{
    quiet_free(*(struct quiet **)ctx);
    came++;
}

static volatile sig_atomic_t works = 1;

static void on_signal(int number)
{
    works = 0;
}

/* Works until SIGUSR1 comes, then rests; gone with the test. */
static pid_t process_new(void)
{
    pid_t pid;

    works = 1;
    ck_assert(signal(SIGUSR1, on_signal) != SIG_ERR); /* inherited: no signal comes too soon */
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    while (works)
        ;
    for (;;)
        (void)pause();
}

static void process_end(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(waits_for_who_works)
{
    struct quiet *quiet;
    pid_t pid = process_new();

    came = 0;
    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(quiet_new(loop, pid, on_quiet, &quiet, &quiet), 0);
    turn_for(loop, 500);
    ck_assert_uint_eq(came, 0);
    ck_assert_int_eq(kill(pid, SIGUSR1), 0);
    TURN_UNTIL(loop, came == 1);
    process_end(pid);
    loop_free(loop);
}
END_TEST

START_TEST(does_not_wait_for_ever)
{
    struct quiet *quiet;
    pid_t pid = process_new();
    uint64_t began_ms;

    came = 0;
    ck_assert_int_eq(loop_new(&loop), 0);
    began_ms = loop_now_ms(loop);
    ck_assert_int_eq(quiet_new(loop, pid, on_quiet, &quiet, &quiet), 0);
    TURN_UNTIL(loop, came == 1);
    ck_assert_uint_ge(loop_now_ms(loop) - began_ms, QUIET_PATIENCE_MS);
    process_end(pid);
    loop_free(loop);
}
END_TEST

START_TEST(does_not_wait_for_what_is_gone)
{
    struct quiet *quiet, *late;
    pid_t pid = process_new();

    came = 0;
    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(quiet_new(loop, pid, on_quiet, &quiet, &quiet), 0);
    process_end(pid);
    TURN_UNTIL(loop, came == 1);
    ck_assert_int_lt(quiet_new(loop, pid, on_quiet, &late, &late), 0);
    loop_free(loop);
}
END_TEST

START_TEST(may_be_given_up)
{
    struct quiet *quiet;

    came = 0;
    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(quiet_new(loop, getpid(), on_quiet, &quiet, &quiet), 0);
    quiet_free(quiet);
    quiet_free(NULL);
    turn_for(loop, 200);
    ck_assert_uint_eq(came, 0);
    loop_free(loop);
}
END_TEST

UNIT_MAIN("qemu_quiet", waits_for_who_works, does_not_wait_for_ever,
          does_not_wait_for_what_is_gone, may_be_given_up)
