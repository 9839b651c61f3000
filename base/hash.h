/* hash.h - SHA-256 and SHA-1 (nettle underneath). SHA-1 is for protocols that demand it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <nettle/sha2.h>

#define HASH_SHA256_BYTES 32
#define HASH_SHA256_HEX_BYTES 65 /* 64 digits and the NUL */
#define HASH_SHA1_BYTES 20

struct hash_sha256 {
    struct sha256_ctx state;
};

void hash_sha256_init(struct hash_sha256 *hash);
void hash_sha256_update(struct hash_sha256 *hash, const void *data, size_t size);
/* The digest of all updates; the hash starts anew. */
void hash_sha256_final(struct hash_sha256 *hash, uint8_t ret_digest[HASH_SHA256_BYTES]);
/* The same, in lower-case hex. */
void hash_sha256_final_hex(struct hash_sha256 *hash, char ret_hex[HASH_SHA256_HEX_BYTES]);

void hash_sha256_hex(const void *data, size_t size, char ret_hex[HASH_SHA256_HEX_BYTES]);
void hash_sha1(const void *data, size_t size, uint8_t ret_digest[HASH_SHA1_BYTES]);

/* Lower-case hex of SIZE bytes and a NUL; ret_text has room for 2 * SIZE + 1. */
void hash_hex(const uint8_t *data, size_t size, char *ret_text);
