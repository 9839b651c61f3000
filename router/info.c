/* info.c - see info.h. */
#include "info.h"

#include "error.h"
#include "json_scan.h"
#include "router.h"

static int append_text_or_null(struct buf *to, const char *text)
{
    return text ? json_append_string(to, text, strlen(text)) : buf_append_text(to, "null");
}

/* INFO is JSON; absent: null. */
static int info_encode(const struct router *router, struct span info, struct buf *to)
{
    int result = buf_append_text(to, "{\"adapter\":");

    if (result == 0)
        result = append_text_or_null(to, router->binding.name);
    if (result == 0)
        result = buf_printf(to,
                            ",\"namespace\":\"default\",\"contract\":{\"major\":%u,"
                            "\"minor\":%u},\"info\":",
                            CONTRACT_MAJOR, CONTRACT_MINOR);
    if (result == 0)
        result = info.data ? buf_append(to, info.data, info.size) : buf_append_text(to, "null");
    if (result == 0)
        result = buf_printf(to, ",\"status\":\"%s\"}", route_status(router));
    return result;
}

/* The adapter's reply as it is, if it is the object that it has to be. */
static struct span info_of_answer(const struct answer *answer)
{
    struct span value;

    if (answer->kind != ANSWER_REPLY ||
        json_scan(answer->body.data, answer->body.size, &value, NULL) < 0 ||
        json_kind(value) != JSON_OBJECT)
        return (struct span){ 0 };
    return value;
}

static void info_answer(struct router *router, const struct answer *answer, struct buf *to,
                        struct answer *ret_answer)
{
    if (info_encode(router, info_of_answer(answer), to) < 0) {
        *ret_answer = (struct answer){ .kind = ANSWER_FAILED,
                                       .message = "the router is out of memory" };
        return;
    }
    *ret_answer = (struct answer){
        .kind = ANSWER_REPLY,
        .body = { .data = (const char *)to->data, .size = to->size },
    };
}

struct pending *info_call(struct router *router, struct caller *caller, const struct call *call)
{
    static const struct answer unanswered = { .kind = ANSWER_FAILED };
    _cleanup_(buf_done)
    struct buf body = { 0 };
    struct answer answer;
    struct forward forward = {
        .adapter = router->binding.adapter,
        .operation = span_of_text("adapter::info"),
        .call = call,
        .deadline_ms = call->deadline_ms < INFO_TIMEOUT_MS ? call->deadline_ms
                                                           : INFO_TIMEOUT_MS,
        .filter = info_answer,
        .metrics_op = OP_adapter_info,
    };

    if (router->binding.adapter && !router->draining)
        return passthrough_forward(&router->passthrough, caller, &forward);
    info_answer(router, &unanswered, &body, &answer);
    metrics_call(&router->metrics, OP_adapter_info, SANDBOX_OK, 0);
    if (!call->detached)
        caller->events->answer(caller->ctx, call->tag, &answer);
    return NULL;
}
