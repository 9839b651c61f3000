/* coverage.h - which operations and codes were exercised, so that a hole is a failure. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "error.h"
#include "tables.h"
#include "yaml.h"

struct coverage {
    bool operations[OP_MAX];
    bool codes[SANDBOX_CODE_MAX];
};

void coverage_add(struct coverage *coverage, const struct coverage *more);
/* Adds what these steps would have brought about: of a rule that was skipped for a reason. */
void coverage_add_steps(struct coverage *coverage, const struct yaml_node *steps);
/* Prints what was neither seen nor excused and returns how many. */
unsigned coverage_report(const struct coverage *coverage, const struct coverage *excused,
                         FILE *to);
