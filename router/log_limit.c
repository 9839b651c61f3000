/* log_limit.c - see log_limit.h. */
#include "log_limit.h"

#include "log.h"

bool log_limit_pass(struct log_limit *limit, uint64_t now_ms)
{
    if (now_ms - limit->since_ms >= LOG_LIMIT_INTERVAL_MS) {
        if (limit->count > LOG_LIMIT_LINES)
            log_event(LOG_WARN, "lines_left_out",
                      log_uint("count", limit->count - LOG_LIMIT_LINES));
        limit->since_ms = now_ms;
        limit->count = 0;
    }
    return limit->count++ < LOG_LIMIT_LINES;
}
