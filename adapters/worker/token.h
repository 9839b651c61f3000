/* token.h - the secret that callers of one worker VM must know (contract 12.1).
 *
 * Only its digest is kept, so that no copy of it lies about, and so that comparing takes the
 * same time whatever was sent. */
#pragma once

#include <stdbool.h>

#include "hash.h"

struct token {
    uint8_t digest[HASH_SHA256_BYTES];
};

void token_set(struct token *token, const char *text);
/* TEXT may be NULL: it does not match. */
bool token_matches(const struct token *token, const char *text);
