/* fake_clock.h - a monotonic clock that a test puts forward, so that no test waits for a
 * deadline. The linker puts it in the place of clock_gettime(2). */
#pragma once

#include <stdint.h>

#include "loop.h"

/* From now on MS later. */
void fake_clock_advance(uint64_t ms);
/* The wall clock is SECS ahead of the true one, behind it below 0; nothing else moves. */
void fake_clock_set_wall(int64_t secs);
/* Back to the true time, which the test's own library reckons with; no loop is left by then. */
void fake_clock_reset(void);
/* Later, and what is due then has happened. */
void fake_clock_pass(struct loop *loop, uint64_t ms);
