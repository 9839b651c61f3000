/* answer.h - one answer against what the step expects and what every answer must be. */
#pragma once

#include "coverage.h"
#include "native_client.h"
#include "variables.h"
#include "yaml.h"

struct expectation {
    const struct yaml_node *step;
    struct variables *variables;
    struct coverage *coverage;
    struct buf *transcript; /* the answer with all that differs by nature masked; or NULL */
    uint64_t duration_ms;
    int64_t minor; /* of the adapter: `outcome` and `partial` are since 1.2 */
};

/* True when it is as expected; saves what `save` names. Else WHY says what differs. */
bool answer_check(const struct native_call *call, const struct expectation *expectation,
                  struct buf *why);
