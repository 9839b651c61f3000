/* programs.h - what all programs of a machine may have together, next to the agent and the
 * kernel's own threads: half of the processor's time while both want it, and so many processes
 * that a fork bomb runs into EAGAIN before it runs out of memory. So the agent answers, stops
 * and kills whatever they do. */
#pragma once

#include <stdint.h>

/* The limit of a machine with so much memory; threads count. */
#define PROGRAMS_PROCESSES_A_MIB 3u
#define PROGRAMS_PROCESSES_MIN 128u
#define PROGRAMS_PROCESSES_MAX 16384u
unsigned programs_processes_max(uint64_t memory_bytes);

/* Makes the programs' cgroup below the root of the hierarchy (consumed; -1 is fine) and opens
 * it. A kernel without these controllers gives a cgroup without the limits, which is logged;
 * one without cgroups -1. */
int programs_open(int own_root_fd, uint64_t memory_bytes);
