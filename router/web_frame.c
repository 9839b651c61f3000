/* web_frame.c - see web_frame.h. */
#include "web_frame.h"

#include <errno.h>

static const char *const member_names[] = {
    [WEB_TYPE] = "type",
    [WEB_INVOCATION_ID] = "invocation_id",
    [WEB_FUNCTION_ID] = "function_id",
    [WEB_DATA] = "data",
    [WEB_ACTION] = "action",
    [WEB_NAMESPACE] = "namespace",
    [WEB_TRACEPARENT] = "traceparent",
    [WEB_BAGGAGE] = "baggage",
    [WEB_PROGRESS] = "progress",
    [WEB_ID] = "id",
    [WEB_PREVIOUS_WORKER_ID] = "previous_worker_id",
    [WEB_REATTACH_TOKEN] = "reattach_token",
};
_Static_assert(ARRAY_SIZE(member_names) == WEB_MEMBER_MAX, "a name for each member");

/* Old SDKs send their telemetry on a second main socket. */
static bool is_telemetry(struct span message)
{
    return span_starts_with(message, "OTLP") || span_starts_with(message, "MTRC") ||
           span_starts_with(message, "LOGS");
}

static bool is_blank(struct span message)
{
    for (size_t i = 0; i < message.size; i++) {
        if (message.data[i] != ' ' && message.data[i] != '\t' && message.data[i] != '\n' &&
            message.data[i] != '\r')
            return false;
    }
    return true;
}

static void find_members(struct span object, struct web_frame *ret_frame)
{
    struct json_member members[WEB_MEMBER_MAX];

    for (int i = 0; i < WEB_MEMBER_MAX; i++)
        members[i].name = member_names[i];
    json_find(object, members, WEB_MEMBER_MAX);
    for (int i = 0; i < WEB_MEMBER_MAX; i++) {
        struct span value = members[i].value;

        if (i != WEB_DATA && value.data && json_kind(value) == JSON_NULL)
            value = (struct span){ 0 };
        ret_frame->members[i] = value;
    }
}

enum web_frame_kind web_frame_read(bool is_text, const uint8_t *data, size_t size,
                                   struct web_frame *ret_frame, const char **ret_reason)
{
    struct span message = { .data = (const char *)data, .size = size };
    struct span value;
    int result;

    if (is_blank(message) || (!is_text && is_telemetry(message)))
        return WEB_FRAME_SILENT;
    result = json_scan(message.data, message.size, &value, NULL);
    if (result == 0 && json_kind(value) == JSON_OBJECT) {
        find_members(value, ret_frame);
        value = ret_frame->members[WEB_TYPE];
        if (value.data && json_kind(value) == JSON_STRING)
            return WEB_FRAME_JSON;
        *ret_reason = "no type";
    } else {
        *ret_reason = result == -E2BIG ? "nested too deep" : "no JSON object";
    }
    return WEB_FRAME_BAD;
}
