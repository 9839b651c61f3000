/* json_digest.h - one digest for all texts of one JSON value.
 *
 * Key order, white space, escapes and the way a number is written (1, 1.0, 10e-1) make no
 * difference; of a repeated key the last one counts. */
#pragma once

#include "hash.h"
#include "span.h"

/* TEXT is any JSON value. 0, -EBADMSG (no JSON), -E2BIG (nested too deep), -ENOMEM. */
int json_digest(struct span text, uint8_t ret_digest[HASH_SHA256_BYTES]);
