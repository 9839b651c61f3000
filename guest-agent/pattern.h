/* pattern.h - regular expressions and literal texts, with limits (contract 8.13).
 *
 * PCRE2 without its JIT: only the interpreter keeps all three limits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "job.h"
#include "tables.h"

#define PATTERN_BYTES_MAX (64u * 1024)
#define PATTERN_MATCH_STEPS_MAX 1000000u
#define PATTERN_DEPTH_MAX 10000u
#define PATTERN_HEAP_KIB_MAX (20u * 1024)

struct pattern_spec {
    struct blob text;
    bool literal;
    bool ignore_case;
};

struct pattern;

/* S217 names pattern, offset and reason. JOB (borrowed, may be NULL): a match stops when it is
 * cancelled. */
int pattern_new(const struct pattern_spec *spec, struct job *job, struct pattern **ret_pattern,
                struct sandbox_error *err);
void pattern_free(struct pattern *pattern);
DEFINE_CLEANUP(struct pattern *, pattern_free)

/* A line (valid UTF-8) and from where on a match is wanted. */
struct pattern_subject {
    const char *text;
    size_t size;
    size_t from;
    bool again_here; /* only at `from`, and not empty: after an empty match there */
};

/* 1: found; 0: not; -1: S217, too costly; S216, cancelled. */
int pattern_match(struct pattern *pattern, const struct pattern_subject *subject,
                  struct sandbox_error *err);

/* Of the last match. False: the group took no part in it. */
bool pattern_group(const struct pattern *pattern, unsigned group, size_t *ret_start,
                   size_t *ret_end);
unsigned pattern_group_count(const struct pattern *pattern); /* without group 0 */
bool pattern_has_name(const struct pattern *pattern, const char *name);
/* The group of that name; several may share one, then the first that took part in the last
 * match counts. 0: no such name. */
unsigned pattern_group_named(const struct pattern *pattern, const char *name);
