/* fake_clock.c - see fake_clock.h. */
#include "fake_clock.h"

#include <time.h>

#include "turn.h"

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static uint64_t ahead_ms;
static int64_t wall_ahead_secs;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = __real_clock_gettime(clock, time);

    if (clock == CLOCK_MONOTONIC)
        time->tv_sec += (time_t)(ahead_ms / 1000);
    if (clock == CLOCK_MONOTONIC)
        time->tv_nsec += (long)(ahead_ms % 1000) * 1000000;
    if (clock == CLOCK_REALTIME)
        time->tv_sec += (time_t)wall_ahead_secs;
    if (time->tv_nsec >= 1000000000) {
        time->tv_nsec -= 1000000000;
        time->tv_sec++;
    }
    return result;
}

void fake_clock_advance(uint64_t ms)
{
    ahead_ms += ms;
}

void fake_clock_set_wall(int64_t secs)
{
    wall_ahead_secs = secs;
}

void fake_clock_reset(void)
{
    ahead_ms = 0;
}

void fake_clock_pass(struct loop *loop, uint64_t ms)
{
    fake_clock_advance(ms);
    for (unsigned turns = 0; turns < 4; turns++) {
        if (loop_turn(loop, 1) != 0)
            ck_abort_msg("the loop failed");
    }
}
