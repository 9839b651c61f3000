/* image_seal.h - how it is known that an image is still what its install left (docs/images.md).
 *
 * SHA256SUMS holds the digest of each file. `checked` holds what stat(2) said of the files when
 * they were last compared with it: while it says the same, they are not read again. The reading
 * is sha256sum(1)'s, in a child process. */
#pragma once

#include <stdbool.h>

#include "buf.h"
#include "hash.h"

#define IMAGE_SUMS_NAME "SHA256SUMS"
#define IMAGE_CHECKED_NAME "checked"

/* The arguments of a child, ending with DIRECTORY, which is borrowed. */
struct image_command {
    const char *argv[6];
};

/* Writes SHA256SUMS: the last file of an image but `checked`. */
struct image_command image_seal_command(const char *directory);
/* Exits with 0 when every digest is right. */
struct image_command image_check_command(const char *directory);

/* What stat(2) says of the files: IDENTITY becomes some text. 0 or -errno. */
int image_seal_identity(const char *directory, struct buf *identity);
/* The digests were found right; the files had IDENTITY before they were read. 0 or -errno. */
int image_seal_accept(const char *directory, const struct buf *identity);
/* The files are as at the last accept. */
bool image_seal_holds(const char *directory);
/* The next use reads everything again. */
void image_seal_break(const char *directory);

/* A digest over the content, for what is made from it. 0 or -errno. */
int image_seal_digest(const char *directory, char ret_digest[HASH_SHA256_HEX_BYTES]);
