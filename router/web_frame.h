/* web_frame.h - a frame of the main socket as spans of its members (iii-wire 3.1). Pure. */
#pragma once

#include "json_scan.h"

enum web_member {
    WEB_TYPE,
    WEB_INVOCATION_ID,
    WEB_FUNCTION_ID,
    WEB_DATA,
    WEB_ACTION,
    WEB_NAMESPACE,
    WEB_TRACEPARENT,
    WEB_BAGGAGE,
    WEB_PROGRESS,
    WEB_ID,
    WEB_PREVIOUS_WORKER_ID,
    WEB_REATTACH_TOKEN,
    WEB_MEMBER_MAX
};

/* Raw JSON each, absent when it is not there; null counts as absent, save in data. */
struct web_frame {
    struct span members[WEB_MEMBER_MAX];
};

enum web_frame_kind {
    WEB_FRAME_JSON,   /* an object with a text `type` */
    WEB_FRAME_SILENT, /* blank, or binary telemetry: dropped without a word */
    WEB_FRAME_BAD     /* *ret_reason says why */
};

enum web_frame_kind web_frame_read(bool is_text, const uint8_t *data, size_t size,
                                   struct web_frame *ret_frame, const char **ret_reason);
