/* However a head is cut into pieces, it comes out the same; what is parsed can be asked. */
#include <stdlib.h>

#include "http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct http_head *head, const uint8_t *data, size_t size, size_t piece)
{
    for (size_t at = 0; at < size && head->state == HTTP_HEAD_OPEN;) {
        size_t used = 0, left = size - at;

        if (http_head_feed(head, data + at, left < piece ? left : piece, &used) < 0)
            abort();
        at += used;
    }
}

static void ask(struct span text)
{
    struct http_request request;
    struct http_response response;
    struct span value;

    if (http_request_parse(text, &request) == 0) {
        _cleanup_(buf_done)
        struct buf key = { 0 };
        unsigned count;

        if (http_header_get(request.headers, "host", &value) != 1)
            abort();
        (void)http_header_has_token(request.headers, "connection", "upgrade");
        (void)http_query_get(request.query, "key", &key, &count); /* any result will do */
    }
    if (http_response_parse(text, &response) == 0 && response.status > 999)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_head whole = { 0 }, pieces = { 0 };

    feed(&whole, data, size, size);
    feed(&pieces, data, size, 1);
    if (whole.state != pieces.state || whole.bytes.size != pieces.bytes.size)
        abort();
    if (whole.state == HTTP_HEAD_COMPLETE)
        ask((struct span){ .data = (const char *)whole.bytes.data, .size = whole.bytes.size });
    http_head_done(&whole);
    http_head_done(&pieces);
    return 0;
}
