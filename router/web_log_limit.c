/* web_log_limit.c - see web_log_limit.h. */
#include "web_log_limit.h"

#include "log.h"

bool web_log_limit_pass(struct web_log_limit *limit, uint64_t now_ms)
{
    if (now_ms - limit->since_ms >= WEB_LOG_LIMIT_INTERVAL_MS) {
        if (limit->count > WEB_LOG_LIMIT_LINES)
            log_event(LOG_WARN, "web_lines_left_out",
                      log_uint("count", limit->count - WEB_LOG_LIMIT_LINES));
        limit->since_ms = now_ms;
        limit->count = 0;
    }
    return limit->count++ < WEB_LOG_LIMIT_LINES;
}
