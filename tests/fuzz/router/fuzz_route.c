/* fuzz_route.c - any function name and any body, with the router's own operations among them:
 * one answer for each call, and it is JSON. */
#include <assert.h>
#include <string.h>

#include "json_scan.h"
#include "router.h"

static void on_answer(void *ctx, uint64_t tag, const struct answer *answer)
{
    unsigned *answers = ctx;
    struct span value;

    (*answers)++;
    if (answer->kind == ANSWER_REPLY || answer->kind == ANSWER_ERROR)
        assert(json_scan(answer->body.data, answer->body.size, &value, NULL) == 0);
    else
        assert(answer->message && strlen(answer->message) > 0);
}

static void on_event(void *ctx, uint64_t tag, struct span body)
{
    assert(!"an event without an adapter");
}

/* The name ends at the first NUL, the body is the rest. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct caller_events events = { .answer = on_answer, .event = on_event };
    static struct settings settings = { .router = { .docs_base = ERROR_DOCS_BASE_DEFAULT,
                                                    .max_message_bytes = 16u * 1024 * 1024 } };
    static struct router router;
    static struct loop *loop;
    const uint8_t *end = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t name_size = end ? (size_t)(end - data) : size;
    unsigned answers = 0;
    struct caller caller;
    struct call call = {
        .function = { .data = (const char *)data, .size = name_size },
        .body = { .data = (const char *)(end ? end + 1 : data + size),
                  .size = end ? size - name_size - 1 : 0 },
        .deadline_ms = ENVELOPE_NO_DEADLINE,
    };

    if (!loop && (loop_new(&loop) < 0 || router_init(&router, loop, &settings) < 0))
        return 0;
    caller_init(&caller, &events, &answers);
    assert(route_call(&router, &caller, &call) == NULL);
    assert(answers == 1);
    return 0;
}
