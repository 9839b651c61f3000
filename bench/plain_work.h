/* plain_work.h - what the processors of this machine do for each other, to judge others'
 * figures by: plain work, without a machine, a process or a system call. Where two processors
 * are threads of one core, or whoever runs this machine gives them to others as well, a burst
 * is slower than one after the other for that alone. */
#pragma once

#include "sample.h"

#define WORK_PIECES_MAX 16

/* How many repetitions take some MS where nothing else runs; at least 1. */
unsigned work_repetitions(double ms);

/* PIECES pieces of work, each of REPETITIONS, by LANES threads: how long each took since it was
 * asked for, which is at the beginning for all of them or, with one lane, when the one before
 * was done. 0, -ENOMEM, or what pthread_create() says, negative. */
int work_run(unsigned repetitions, unsigned pieces, unsigned lanes, struct samples *samples);
