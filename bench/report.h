/* report.h - the rows of a run: as a table on stdout, as JSON in a file.
 *
 * JSON: {"calibration": {…}, "rows": [{"name", "n", "p50", "p95", "p99", "unit", "against",
 * "ratio"}]}. A ratio is of medians of one run, of the row to the row `against`. */
#pragma once

#include <stdbool.h>

#include "sample.h"

#define REPORT_ROWS_MAX 128

struct row {
    char name[64];
    size_t n;
    double p50, p95, p99;
    const char *unit;
    char against[64]; /* "": none */
    double ratio;
};

struct report {
    char calibration[2048]; /* members of the JSON object, without braces */
    size_t row_count;
    struct row rows[REPORT_ROWS_MAX];
};

/* Adds a row from SAMPLES and prints it. AGAINST names an earlier row, or is NULL. */
void report_add(struct report *report, const char *name, struct samples *samples,
                const char *unit, const char *against);
/* The same; each percentile is the median of the rounds' own. */
void report_add_rounds(struct report *report, const char *name, struct rounds *rounds,
                       const char *unit, const char *against);
/* A single figure. */
void report_add_value(struct report *report, const char *name, double value, const char *unit,
                      const char *against);
const struct row *report_find(const struct report *report, const char *name);
int report_write_json(const struct report *report, const char *path); /* 0 or -errno */
