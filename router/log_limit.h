/* log_limit.h - strangers' nonsense is worth some lines, not a flood of them.
 *
 * In each interval LOG_LIMIT_LINES are let through; the rest are counted, and the count is
 * logged with the first line of a later interval. Zero-initialised is ready. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_LINES 10u
#define LOG_LIMIT_INTERVAL_MS 10000u

struct log_limit {
    uint64_t since_ms;
    unsigned count; /* lines asked for since then */
};

/* Whether the line may be written. NOW_MS is the loop's. */
bool log_limit_pass(struct log_limit *limit, uint64_t now_ms);
