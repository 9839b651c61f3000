/* pool_budget.h - what the pool may take: memory of its machines, processor time of making them
 * (settings pool_memory_mb and pool_cpu_percent; 0: no limit).
 *
 * A machine's memory is what it has for itself when it is ready: pages of the template that it
 * shares with others are not counted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of one process, in KiB and ms; 0 when it is gone. */
uint64_t pool_budget_memory_kb(pid_t pid);
uint64_t pool_budget_cpu_ms(pid_t pid);

/* Whether one of EXPECTED_KB (0: not known yet) may be added to USED_KB. */
bool pool_budget_has_room(uint64_t used_kb, uint64_t expected_kb, uint32_t limit_mb);
/* How long to do nothing after CPU_MS of work, so that work is at most PERCENT of the time. */
uint64_t pool_budget_rest_ms(uint64_t cpu_ms, uint32_t percent);
