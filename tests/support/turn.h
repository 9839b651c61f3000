/* turn.h - runs a loop until something has happened; a test fails when it does not. */
#pragma once

#include <check.h>

#include "loop.h"

#define TURN_DEADLINE_MS 20000

/* Plain conditions inside: libcheck's assertions are slow when they hold. */
#define TURN_UNTIL(loop, condition)                                                            \
    do {                                                                                       \
        uint64_t turn_end_ = loop_now_ms(loop) + TURN_DEADLINE_MS;                             \
        while (!(condition)) {                                                                 \
            if (loop_now_ms(loop) >= turn_end_)                                                \
                ck_abort_msg("never happened: %s", #condition);                                \
            if (loop_turn(loop, 1000) != 0)                                                    \
                ck_abort_msg("the loop failed");                                               \
        }                                                                                      \
    } while (0)

/* Lets MS pass in the loop: for what must not happen. */
static inline void turn_for(struct loop *loop, uint64_t ms)
{
    uint64_t end = loop_now_ms(loop) + ms;

    while (loop_now_ms(loop) < end) {
        if (loop_turn(loop, (int)(end - loop_now_ms(loop))) != 0)
            ck_abort_msg("the loop failed");
    }
}
