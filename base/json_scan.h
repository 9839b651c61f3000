/* json_scan.h - where the parts of a JSON text are, without making anything of them.
 *
 * json_scan() checks the whole text once (RFC 8259, UTF-8, iterative, depth-limited); all other
 * functions take values of a text that passed it and point into that text. Nothing here owns
 * memory. Writing a string is json_append_string() of the contract. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "span.h"

#define JSON_DEPTH_MAX 512

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* TEXT is one JSON value with optional white space around it; *ret_value is the value alone.
 * -EBADMSG: it is not, and *ret_offset (may be NULL) tells where it goes wrong; -E2BIG: it
 * nests deeper than JSON_DEPTH_MAX. */
int json_scan(const char *text, size_t size, struct span *ret_value, size_t *ret_offset);

enum json_kind json_kind(struct span value);

/* The parts of an object or array, in the order of the text. */
struct json_iterator {
    const char *at;
    const char *end;
    bool is_object;
};
struct json_iterator json_iterate(struct span container);
/* KEY is raw, quotes included; absent in arrays. False: no more. */
bool json_next(struct json_iterator *iterator, struct span *ret_key, struct span *ret_value);

/* Top-level members by name, found in one pass. Of a repeated key the last counts; what is not
 * there is absent afterwards. */
struct json_member {
    const char *name;
    struct span value;
};
void json_find(struct span object, struct json_member *members, size_t count);
struct span json_get(struct span object, const char *name); /* one of them */

/* Whether the string (raw, quotes included) means TEXT; false for any other value. */
bool json_string_equals(struct span string, const char *text);
/* Appends what the string means; it may hold NUL. -EINVAL: no string; -EILSEQ: an escape that
 * is no character (a lone surrogate); -ENOMEM, -ENOBUFS. */
int json_string_decode(struct span string, struct buf *to);
/* The number as u64, written without fraction, exponent or sign; else -EINVAL, -ERANGE. */
int json_as_u64(struct span value, uint64_t *ret_value);
