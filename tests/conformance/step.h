/* step.h - the steps of a rule (README.md), one after the other. */
#pragma once

#include "answer.h"
#include "settings_text.h"
#include "subject.h"

/* What one rule holds while its steps run. */
struct play {
    struct native_client *client;
    struct subject *subject;                /* NULL outside a rule */
    const struct settings_source *settings; /* what it was started with */
    const char *adapter_name;
    int64_t minor; /* contract minor of the adapter */
    struct variables variables;
    struct coverage *coverage;
    struct buf *transcript; /* or NULL */
    struct played_call *calls;
    struct played_stream *streams;
};

/* Runs the steps; false at the first that is not as expected, and WHY tells. */
bool play_steps(struct play *play, const struct yaml_node *steps, struct buf *why);
/* One call outside a rule, for set-up: true when it succeeded; the answer's body in RET. */
bool play_call(struct play *play, const char *function, const char *body, struct buf *ret_body);
void play_done(struct play *play);
