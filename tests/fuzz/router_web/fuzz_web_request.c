/* Requests: what is served has all that serving it needs, what is refused has a status that the
 * specification names. */
#include <stdlib.h>

#include "web_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct web_request *request)
{
    static const unsigned refusals[] = { 400, 401, 403, 404, 405, 426, 431 };

    if (request->status == 0) {
        if (request->target == WEB_TARGET_NONE)
            abort();
        if (request->target <= WEB_TARGET_CHANNEL && request->key.size != 24)
            abort();
        if (request->target == WEB_TARGET_CHANNEL && request->channel_id.size == 0)
            abort();
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        if (request->status == refusals[i])
            return;
    }
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *origins[] = { "https://app.example.com" };
    static const struct text_list allowed = { .count = 1, .items = origins };
    struct web_policy policy = { .allowed_origins = &allowed };
    struct http_head head = { 0 };
    struct web_request request;
    size_t used;

    if (size > 0 && data[0] & 1)
        policy.token = "0123456789abcdef";
    if (size > 0 && http_head_feed(&head, data + 1, size - 1, &used) < 0)
        abort();
    if (head.state != HTTP_HEAD_OPEN) {
        if (web_request_judge(&head, &policy, &request) < 0)
            abort();
        check(&request);
        web_request_done(&request);
    }
    http_head_done(&head);
    return 0;
}
