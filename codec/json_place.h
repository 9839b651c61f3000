/* json_place.h - where in a body decoding is, and what is said when it cannot go on: S001 with
 * the field, what it wants and what it got. Used by the files json_decode*.c alone. */
#pragma once

#include "error.h"
#include "span.h"
#include "tables.h"

/* A step of the way into the body; the body itself is NULL. */
struct place {
    const struct place *parent;
    const char *name; /* NULL: an element of a list */
    size_t index;
};

/* Checks the whole text: one JSON object, nesting, surrogates. */
int json_body_check(const char *json, size_t size, struct span *ret_body,
                    struct sandbox_error *err);

/* All return -1. VALUE absent: the field is missing. */
int place_fail(const struct place *place, const struct field *field, struct span value,
               struct sandbox_error *err);
int place_fail_text(const struct place *place, const struct field *field, const char *got,
                    struct sandbox_error *err);
int place_fail_count(const struct place *place, size_t max, size_t count,
                     struct sandbox_error *err);
