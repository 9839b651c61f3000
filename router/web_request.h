/* web_request.h - what a request of the web front wants and whether it may have it (iii-wire
 * 1).
 *
 * Pure: no socket, no state; each check of the specification is a line of web_request_judge().
 */
#pragma once

#include <stdbool.h>

#include "http.h"
#include "tables.h"

enum web_target {
    WEB_TARGET_NONE,
    WEB_TARGET_MAIN,
    WEB_TARGET_OTEL,
    WEB_TARGET_CHANNEL,
    WEB_TARGET_METRICS,
    WEB_TARGET_HEALTH
};

struct web_policy {
    const struct text_list *allowed_origins;
    const char *token; /* NULL: none is wanted */
};

struct web_request {
    enum web_target target;
    unsigned status;   /* 0: to be served; else refused with this */
    const char *extra; /* header lines of the refusal */
    const char *why;   /* its body */
    struct span key;   /* Sec-WebSocket-Key; into the head */
    struct span channel_id;
    struct buf access_key;
    bool writes; /* dir=write */
};

/* HEAD is not open any more. 0, or -ENOMEM. */
int web_request_judge(const struct http_head *head, const struct web_policy *policy,
                      struct web_request *ret_request);
void web_request_done(struct web_request *request);

bool web_origin_allowed(struct span origin, const struct text_list *allowed_origins);
