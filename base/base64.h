/* base64.h - RFC 4648 section 4, strictly: the standard alphabet, padded, no white space. */
#pragma once

#include <stddef.h>

#include "buf.h"

/* Size of the text for SIZE bytes, without a NUL. */
size_t base64_encoded_size(size_t size);

/* Appends the text. 0, -ENOMEM or -ENOBUFS. */
int base64_encode(struct buf *buf, const void *data, size_t size);

/* Appends the bytes. 0, -ENOMEM, -ENOBUFS, or -EINVAL (then BUF is as it was): a character
 * outside the alphabet, a size that is no multiple of 4, bits set that stand for no byte. */
int base64_decode(struct buf *buf, const char *text, size_t size);
