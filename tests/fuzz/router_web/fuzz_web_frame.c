/* Frames of clients, and error bodies of adapters: whatever comes, members are JSON texts, and
 * the error of a frame is a JSON object with a text code and no stacktrace. */
#include <stdlib.h>

#include "web_answer.h"
#include "web_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_frame(bool is_text, const uint8_t *data, size_t size)
{
    struct web_frame frame;
    const char *reason = NULL;
    struct span value;

    switch (web_frame_read(is_text, data, size, &frame, &reason)) {
    case WEB_FRAME_SILENT:
        return;
    case WEB_FRAME_BAD:
        if (!reason)
            abort();
        return;
    case WEB_FRAME_JSON:
        break;
    }
    for (int i = 0; i < WEB_MEMBER_MAX; i++) {
        struct span member = frame.members[i];

        if (member.data && json_scan(member.data, member.size, &value, NULL) < 0)
            abort();
    }
}

static void check_error(const uint8_t *data, size_t size)
{
    _cleanup_(buf_done)
    struct buf error = { 0 };
    struct span value;

    if (web_error_append(&error, (struct span){ (const char *)data, size }) < 0)
        return;
    if (json_scan((const char *)error.data, error.size, &value, NULL) < 0 ||
        json_kind(json_get(value, "code")) != JSON_STRING ||
        json_kind(json_get(value, "message")) != JSON_STRING ||
        json_get(value, "stacktrace").data || json_get(value, "partial").data)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    check_frame(data[0] & 1, data + 1, size - 1);
    check_error(data + 1, size - 1);
    return 0;
}
