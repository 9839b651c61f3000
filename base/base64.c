/* base64.c - see base64.h. */
#include "base64.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The 6 bits of CHARACTER, or -1. */
static inline int sextet(uint8_t character)
{
    if (character >= 'A' && character <= 'Z')
        return character - 'A';
    if (character >= 'a' && character <= 'z')
        return character - 'a' + 26;
    if (character >= '0' && character <= '9')
        return character - '0' + 52;
    if (character == '+')
        return 62;
    return character == '/' ? 63 : -1;
}

size_t base64_encoded_size(size_t size)
{
    return size / 3 * 4 + (size % 3 > 0 ? 4 : 0);
}

static void encode_group(uint8_t out[4], const uint8_t *in, size_t size)
{
    uint32_t bits = (uint32_t)in[0] << 16;

    if (size > 1)
        bits |= (uint32_t)in[1] << 8;
    if (size > 2)
        bits |= in[2];
    out[0] = (uint8_t)alphabet[bits >> 18];
    out[1] = (uint8_t)alphabet[bits >> 12 & 0x3F];
    out[2] = size > 1 ? (uint8_t)alphabet[bits >> 6 & 0x3F] : '=';
    out[3] = size > 2 ? (uint8_t)alphabet[bits & 0x3F] : '=';
}

int base64_encode(struct buf *buf, const void *data, size_t size)
{
    size_t encoded_size = base64_encoded_size(size);
    const uint8_t *in = data;
    uint8_t *out;
    int result = buf_ensure(buf, encoded_size);

    if (result < 0)
        return result;
    out = buf->data + buf->size;
    for (; size >= 3; size -= 3, in += 3, out += 4)
        encode_group(out, in, 3);
    if (size > 0)
        encode_group(out, in, size);
    buf->size += encoded_size;
    return 0;
}

/* Four characters to three bytes; COUNT of them are not padding. */
static bool decode_group(uint8_t out[3], const uint8_t *in, size_t count)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < count; i++) {
        int value = sextet(in[i]);

        if (value < 0)
            return false;
        bits |= (uint32_t)value << (18 - 6 * i);
    }
    out[0] = (uint8_t)(bits >> 16);
    out[1] = (uint8_t)(bits >> 8);
    out[2] = (uint8_t)bits;
    /* Bits behind the last byte must be zero, so that each value has one spelling. */
    return (count != 2 || (bits & 0xFFFF) == 0) && (count != 3 || (bits & 0xFF) == 0);
}

int base64_decode(struct buf *buf, const char *text, size_t size)
{
    const uint8_t *in = (const uint8_t *)text;
    size_t padding = 0;
    size_t decoded_size;
    int result;

    if (size % 4 != 0)
        return -EINVAL;
    if (size > 0 && in[size - 1] == '=')
        padding = in[size - 2] == '=' ? 2 : 1;
    decoded_size = size / 4 * 3 - padding;
    result = buf_ensure(buf, decoded_size);
    if (result < 0)
        return result;
    for (size_t i = 0, o = 0; i < size; i += 4, o += 3) {
        size_t count = i + 4 == size ? 4 - padding : 4;
        uint8_t group[3];

        if (!decode_group(group, in + i, count))
            return -EINVAL;
        memcpy(buf->data + buf->size + o, group, count - 1);
    }
    buf->size += decoded_size;
    return 0;
}
