/* coverage.h - which operations and codes were exercised, so that a hole is a failure. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "error.h"
#include "tables.h"

struct coverage {
    bool operations[OP_MAX];
    bool codes[SANDBOX_CODE_MAX];
};

void coverage_add(struct coverage *coverage, const struct coverage *more);
/* Prints what was never seen and returns how many; worker operations and S5xx only count for an
 * adapter with the feature. */
unsigned coverage_report(const struct coverage *coverage, bool has_workers, FILE *to);
