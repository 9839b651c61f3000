/* web_call.h - calls of a main socket, from `invokefunction` to `invocationresult`. */
#pragma once

#include "web_main.h"

/* One that has an id and is not answered yet. The spans are raw JSON strings as the client
 * wrote them, and are echoed so. */
struct web_call {
    struct list node;
    struct web_main *owner;
    struct span id;
    struct span function;
    struct span traceparent; /* absent: not given, or too long to be echoed */
    struct span baggage;
    const char *name; /* the function, decoded */
    bool wants_progress;
    char text[]; /* what the spans point into */
};

/* Begins the call, or answers it at once. NULL, or what makes the frame a bad one, which is
 * ignored. */
const char *web_call_begin(struct web_main *owner, const struct web_frame *frame);

/* The owner is gone: no answers any more. */
void web_calls_forget(struct list *calls);

extern const struct caller_events web_call_events;
