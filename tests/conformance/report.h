/* report.h - results for people, as TAP, as JUnit XML, and two adapters side by side. */
#pragma once

#include <stdio.h>

#include "suite.h"

struct report {
    bool tap;
    bool verbose; /* passed rules too */
    unsigned count;
};

/* One result as it comes; suite.report. */
void report_result(void *ctx, const struct result *result);
void report_summary(const struct report *report, const struct suite *suite);
int report_junit(const struct suite *suite, const char *path); /* 0 or -errno */
/* Prints where the two differ in verdict or answers; returns how many rules do. */
unsigned report_differences(const struct suite *a, const struct suite *b);
