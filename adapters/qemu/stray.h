/* stray.h - children that nobody wants any more: killed, and reaped when they have ended. */
#pragma once

#include <sys/types.h>

#include "list.h"
#include "loop.h"

/* PID is a child of ours that was not reaped, so its number is nobody else's. */
void strays_add(struct list *strays, struct loop *loop, pid_t pid);
/* Waits for those that are left. */
void strays_end(struct list *strays);
