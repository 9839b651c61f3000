/* token.c - see token.h. */
#include "token.h"

#include <nettle/memops.h>
#include <string.h>

void token_set(struct token *token, const char *text)
{
    struct hash_sha256 hash;

    hash_sha256_init(&hash);
    hash_sha256_update(&hash, text, strlen(text));
    hash_sha256_final(&hash, token->digest);
    explicit_bzero(&hash, sizeof(hash));
}

bool token_matches(const struct token *token, const char *text)
{
    struct token other;
    bool equal;

    token_set(&other, text ? text : "");
    equal = memeql_sec(token->digest, other.digest, sizeof(other.digest));
    explicit_bzero(&other, sizeof(other));
    return equal && text;
}
