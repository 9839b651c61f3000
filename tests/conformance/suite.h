/* suite.h - all rules against one adapter. */
#pragma once

#include "case.h"
#include "coverage.h"
#include "subject.h"

#define SUITE_JOBS_MAX 16

enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_SKIP };

struct result {
    const struct case_file *file;
    const struct rule *rule;
    enum verdict verdict;
    char why[2048];        /* FAIL, SKIP */
    struct buf transcript; /* answers, masked, for comparing adapters */
    uint64_t duration_ms;
};

struct suite {
    const struct case_list *cases;
    const char *sources;            /* folder of worker sources: $SOURCES */
    struct subject_options subject; /* state and settings are set for each file */
    const char *image;
    const char *const *sets; /* KEY=VALUE, for every adapter that is started */
    size_t set_count;
    unsigned jobs;    /* files with settings of their own run beside the others; 0 is 1 */
    const char *only; /* prefix of rule ids, or NULL */
    void (*report)(void *ctx, const struct result *result);
    void *ctx;

    struct coverage coverage;
    struct coverage excused; /* by rules that were skipped */
    size_t result_count;
    struct result *results;
};

/* Fills results; -ENOMEM or 0. What cannot be started fails its rules. `report` is called for
 * one file after the other, from any thread but never from two at once. */
int suite_run(struct suite *suite);
size_t suite_count(const struct suite *suite, enum verdict verdict);
void suite_done(struct suite *suite);
