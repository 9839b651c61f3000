/* utf8.h - strict UTF-8 (RFC 3629: no surrogates, nothing over U+10FFFF, shortest form only).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/* Reads one character at TEXT; SIZE > 0. Its length, or 0: *ret_invalid (may be NULL) bytes are
 * a maximal invalid part, in the sense of Unicode's "substitution of maximal subparts". */
size_t utf8_decode(const void *text, size_t size, uint32_t *ret_code_point,
                   size_t *ret_invalid);

bool utf8_valid(const void *text, size_t size);

/* The last boundary between characters at or below MAX: what is before it is not torn by a cut
 * there. SIZE when it is not over MAX. Where text is not UTF-8, each invalid byte stands alone.
 */
size_t utf8_boundary(const char *text, size_t size, size_t max);

/* SIZE without the bytes at the end that only begin a character. */
size_t utf8_complete_size(const void *text, size_t size);

/* Appends TEXT with U+FFFD in place of each maximal invalid part. 0, -ENOMEM or -ENOBUFS. */
int utf8_repair(struct buf *buf, const void *text, size_t size);
/* The same for text that was cut at its end: a character left incomplete there is dropped. */
int utf8_repair_cut(struct buf *buf, const void *text, size_t size);

/* The property White_Space of Unicode. */
bool utf8_is_space(uint32_t code_point);
/* Whether any character of (valid) TEXT is white space. */
bool utf8_has_space(const char *text, size_t size);
