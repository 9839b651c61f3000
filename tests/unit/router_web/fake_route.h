/* fake_route.h - a route that the test plays: calls are recorded, the test answers them. It
 * stands in for route.c and metrics_write(). */
#pragma once

#include "route.h"

#define FAKE_CALLS_MAX 2048

struct fake_call {
    struct caller *caller; /* NULL: answered, or its caller is gone */
    uint64_t tag;
    char function[300];
    char body[300]; /* its beginning */
    size_t body_size;
    char traceparent[100];
    bool wants_events;
    bool detached;
};

struct fake_route {
    struct fake_call calls[FAKE_CALLS_MAX];
    size_t count;
    unsigned gone;         /* callers that left */
    unsigned cancelled;    /* calls that were open then */
    size_t max_body_bytes; /* what route_max_body_bytes() tells */
};

extern struct fake_route fake_route;
void fake_route_reset(void);

void fake_reply(struct fake_call *call, const char *body);
void fake_error(struct fake_call *call, const char *envelope);
void fake_event(struct fake_call *call, const char *body);
