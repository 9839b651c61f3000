/* idle.h - the arithmetic of contract 10, and nothing else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whole seconds without activity or network payload. PAYLOAD_SECS is the backend's record in
 * whole seconds on the same clock; negative: there is none. */
uint64_t idle_secs(uint64_t now_ms, uint64_t active_ms, int64_t payload_secs);

/* After how many idle seconds a sandbox is reaped; with an exec in flight its slot must be
 * leaked for that. MAX_EXEC_TIMEOUT_MS 0 acts as 1. Saturates. */
uint64_t idle_limit_secs(uint64_t idle_timeout_secs, uint32_t execs,
                         uint64_t max_exec_timeout_ms);

bool idle_is_over(uint64_t idle, uint64_t limit);
