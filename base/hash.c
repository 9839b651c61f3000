/* hash.c - see hash.h. */
#include "hash.h"

#include <nettle/sha1.h>

void hash_sha256_init(struct hash_sha256 *hash)
{
    sha256_init(&hash->state);
}

void hash_sha256_update(struct hash_sha256 *hash, const void *data, size_t size)
{
    sha256_update(&hash->state, size, data);
}

void hash_sha256_final(struct hash_sha256 *hash, uint8_t ret_digest[HASH_SHA256_BYTES])
{
    sha256_digest(&hash->state, HASH_SHA256_BYTES, ret_digest);
}

void hash_sha256_final_hex(struct hash_sha256 *hash, char ret_hex[HASH_SHA256_HEX_BYTES])
{
    uint8_t digest[HASH_SHA256_BYTES];

    hash_sha256_final(hash, digest);
    hash_hex(digest, sizeof(digest), ret_hex);
}

void hash_sha256_hex(const void *data, size_t size, char ret_hex[HASH_SHA256_HEX_BYTES])
{
    struct hash_sha256 hash;

    hash_sha256_init(&hash);
    hash_sha256_update(&hash, data, size);
    hash_sha256_final_hex(&hash, ret_hex);
}

void hash_sha1(const void *data, size_t size, uint8_t ret_digest[HASH_SHA1_BYTES])
{
    struct sha1_ctx state;

    sha1_init(&state);
    sha1_update(&state, size, data);
    sha1_digest(&state, HASH_SHA1_BYTES, ret_digest);
}

void hash_hex(const uint8_t *data, size_t size, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        *ret_text++ = digits[data[i] >> 4];
        *ret_text++ = digits[data[i] & 0x0F];
    }
    *ret_text = 0;
}
