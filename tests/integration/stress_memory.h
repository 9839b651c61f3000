/* stress_memory.h - how much a process and all below it grow at most while something happens.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define STRESS_PROCESSES_MAX 64

struct stress_memory {
    size_t count;
    struct stress_process {
        pid_t pid;
        char name[32];
        long before_kib; /* resident */
    } processes[STRESS_PROCESSES_MAX];
};

/* Notes ROOT and its descendants and forgets their peaks so far. False: /proc does not let us.
 */
bool stress_memory_begin(pid_t root, struct stress_memory *ret_memory);
/* The largest growth of one process from then to its peak since; each is told to TO. */
long stress_memory_growth_kib(const struct stress_memory *memory, FILE *to);
