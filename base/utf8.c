/* utf8.c - see utf8.h. One decoder; all else walks with it. */
#include "utf8.h"

#include <string.h>

#define UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Well-formed sequences by first byte (Unicode standard, table 3-7). Only the second byte has a
 * range of its own; all later ones are 80..BF. */
struct sequence {
    uint8_t first_low, first_high;
    uint8_t second_low, second_high;
    uint8_t length;
    uint8_t first_mask;
};

static const struct sequence sequences[] = {
    { 0xC2, 0xDF, 0x80, 0xBF, 2, 0x1F }, { 0xE0, 0xE0, 0xA0, 0xBF, 3, 0x0F },
    { 0xE1, 0xEC, 0x80, 0xBF, 3, 0x0F }, { 0xED, 0xED, 0x80, 0x9F, 3, 0x0F },
    { 0xEE, 0xEF, 0x80, 0xBF, 3, 0x0F }, { 0xF0, 0xF0, 0x90, 0xBF, 4, 0x07 },
    { 0xF1, 0xF3, 0x80, 0xBF, 4, 0x07 }, { 0xF4, 0xF4, 0x80, 0x8F, 4, 0x07 },
};

static const struct sequence *sequence_find(uint8_t first)
{
    for (size_t i = 0; i < ARRAY_SIZE(sequences); i++) {
        if (first >= sequences[i].first_low && first <= sequences[i].first_high)
            return &sequences[i];
    }
    return NULL;
}

/* How many bytes at TEXT begin a well-formed sequence; sequence->length when it is whole. */
static size_t sequence_match(const struct sequence *sequence, const uint8_t *text, size_t size)
{
    size_t matched = 1;

    if (size < 2 || text[1] < sequence->second_low || text[1] > sequence->second_high)
        return matched;
    for (matched = 2; matched < sequence->length && matched < size; matched++) {
        if ((text[matched] & 0xC0) != 0x80)
            break;
    }
    return matched;
}

size_t utf8_decode(const void *text, size_t size, uint32_t *ret_code_point, size_t *ret_invalid)
{
    const uint8_t *bytes = text;
    const struct sequence *sequence;
    size_t matched = 1;

    if (bytes[0] < 0x80) {
        *ret_code_point = bytes[0];
        return 1;
    }
    sequence = sequence_find(bytes[0]);
    if (sequence)
        matched = sequence_match(sequence, bytes, size);
    if (!sequence || matched < sequence->length) {
        if (ret_invalid)
            *ret_invalid = matched;
        return 0;
    }
    *ret_code_point = bytes[0] & sequence->first_mask;
    for (size_t i = 1; i < matched; i++)
        *ret_code_point = *ret_code_point << 6 | (bytes[i] & 0x3F);
    return matched;
}

/* Bytes at TEXT that are plain ASCII, eight at a time. */
static size_t ascii_prefix(const uint8_t *text, size_t size)
{
    size_t i = 0;
    uint64_t word;

    for (; i + sizeof(word) <= size; i += sizeof(word)) {
        memcpy(&word, text + i, sizeof(word));
        if (word & 0x8080808080808080u)
            break;
    }
    while (i < size && text[i] < 0x80)
        i++;
    return i;
}

/* The size of the valid text at the beginning of TEXT. */
static size_t valid_prefix(const uint8_t *text, size_t size)
{
    size_t i = 0;

    while (i < size) {
        uint32_t code_point;
        size_t length;

        i += ascii_prefix(text + i, size - i);
        if (i == size)
            break;
        length = utf8_decode(text + i, size - i, &code_point, NULL);
        if (length == 0)
            break;
        i += length;
    }
    return i;
}

bool utf8_valid(const void *text, size_t size)
{
    return valid_prefix(text, size) == size;
}

size_t utf8_boundary(const char *text, size_t size, size_t max)
{
    uint32_t code_point;

    if (size <= max)
        return size;
    for (size_t back = 1; back < 4 && back <= max; back++) {
        const char *start = text + max - back;
        size_t length = utf8_decode(start, size - (max - back), &code_point, NULL);

        if (length > back)
            return max - back; /* the cut would tear this character */
        if (((uint8_t)*start & 0xC0) != 0x80)
            break;
    }
    return max;
}

size_t utf8_complete_size(const void *text, size_t size)
{
    const uint8_t *bytes = text;

    for (size_t back = 1; back < 4 && back <= size; back++) {
        const uint8_t *start = bytes + size - back;
        const struct sequence *sequence = sequence_find(*start);

        if (sequence && back < sequence->length &&
            sequence_match(sequence, start, back) == back)
            return size - back;
        if ((*start & 0xC0) != 0x80)
            break;
    }
    return size;
}

int utf8_repair(struct buf *buf, const void *text, size_t size)
{
    const uint8_t *bytes = text;
    int result = 0;

    while (size > 0 && result == 0) {
        size_t valid = valid_prefix(bytes, size);
        size_t invalid = 0;
        uint32_t code_point;

        result = buf_append(buf, bytes, valid);
        if (result == 0 && valid < size) {
            (void)utf8_decode(bytes + valid, size - valid, &code_point, &invalid);
            result = buf_append_text(buf, UTF8_REPLACEMENT);
        }
        bytes += valid + invalid;
        size -= valid + invalid;
    }
    return result;
}

int utf8_repair_cut(struct buf *buf, const void *text, size_t size)
{
    return utf8_repair(buf, text, utf8_complete_size(text, size));
}

bool utf8_is_space(uint32_t code_point)
{
    switch (code_point) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
        return true;
    default:
        return (code_point >= 0x09 && code_point <= 0x0D) ||
               (code_point >= 0x2000 && code_point <= 0x200A);
    }
}

bool utf8_has_space(const char *text, size_t size)
{
    size_t length;

    for (size_t i = 0; i < size; i += length) {
        uint32_t code_point = 0;

        length = utf8_decode(text + i, size - i, &code_point, NULL);
        if (length == 0)
            length = 1; /* no character, so no space */
        else if (utf8_is_space(code_point))
            return true;
    }
    return false;
}
