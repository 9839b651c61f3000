/* standstill.h - QEMU's clock stands still until its guest has answered.
 *
 * Under TCG the interrupt of a timer is code that has to be translated first, a third of all
 * that a clone runs until it answers, while somebody waits for the answer. QEMU's timers go by
 * CLOCK_MONOTONIC: this one stands still meanwhile, and is behind by as much ever after. The
 * guest's own clock is the counter of the processor, which goes on; what its kernel would have
 * done at a tick it does at the next one. */
#pragma once

#define STANDSTILL_MAX_MS 250

/* From now on, until this process sends a message on ANSWER_FD, or the time is over. Once. */
void standstill_begin(int answer_fd);
