/* quiet.h - waits until a process has nothing left to do.
 *
 * What a guest's kernel does behind a program's end (what was freed, what was dirtied) nobody
 * tells; but it shows as processor time, which is looked at until there is none. */
#pragma once

#include <sys/types.h>

#include "loop.h"

struct quiet;

#define QUIET_PATIENCE_MS 3000u

/* DONE is called once, never from inside here: PID rests, or has not for QUIET_PATIENCE_MS, or
 * cannot be looked at. It may free the quiet. 0 or -errno. */
int quiet_new(struct loop *loop, pid_t pid, void (*done)(void *ctx), void *ctx,
              struct quiet **ret_quiet);
void quiet_free(struct quiet *quiet);
