/* random_json.h - JSON texts that say the same in ways that a parser and writer would not keep:
 * 64-bit integers, -0, 1E400, repeated keys, escapes, white space, the order of keys, long
 * strings. Reproducible: the seed decides. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

struct random_json {
    uint64_t state;
};

uint64_t random_json_next(struct random_json *random);
/* Appends one object. LONG_STRING: with one of a MiB in it. */
void random_json_object(struct random_json *random, bool long_string, struct buf *to);
