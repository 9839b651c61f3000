/* uuid.c - see uuid.h. */
#include "uuid.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#define UUID_BYTES 16
#define UUID_TEXT_LENGTH (UUID_TEXT_BYTES - 1)
#define UUID_DIGITS (2 * UUID_BYTES)
#define UUID_URN_PREFIX "urn:uuid:"

/* A hyphen stands before these digits. */
static bool hyphen_before(int digit)
{
    return digit == 8 || digit == 12 || digit == 16 || digit == 20;
}

int uuid_random(char ret_text[UUID_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[UUID_BYTES];
    char *out = ret_text;
    ssize_t size;

    do {
        size = getrandom(bytes, sizeof(bytes), 0);
    } while (size < 0 && errno == EINTR);
    if (size != (ssize_t)sizeof(bytes))
        return size < 0 ? -errno : -EIO;
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40); /* version 4 */
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80); /* variant of RFC 4122 */
    for (int digit = 0; digit < UUID_DIGITS; digit++) {
        if (hyphen_before(digit))
            *out++ = '-';
        *out++ = digits[bytes[digit / 2] >> (digit % 2 ? 0 : 4) & 0x0F];
    }
    *out = 0;
    return 0;
}

static char lower_hex_digit(char c)
{
    if (c >= 'A' && c <= 'F')
        return (char)(c - 'A' + 'a');
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ? c : 0;
}

/* The 32 digits at TEXT, with all four hyphens between them or with none. */
static int parse_digits(const char *text, bool hyphens, char ret_canonical[UUID_TEXT_BYTES])
{
    char canonical[UUID_TEXT_BYTES];
    char *out = canonical;

    for (int digit = 0; digit < UUID_DIGITS; digit++) {
        if (hyphen_before(digit)) {
            if (hyphens && *text++ != '-')
                return -EINVAL;
            *out++ = '-';
        }
        *out = lower_hex_digit(*text++);
        if (*out++ == 0)
            return -EINVAL;
    }
    *out = 0;
    memcpy(ret_canonical, canonical, sizeof(canonical));
    return 0;
}

int uuid_parse(const char *text, char ret_canonical[UUID_TEXT_BYTES])
{
    const size_t prefix = strlen(UUID_URN_PREFIX);

    switch (strlen(text)) {
    case UUID_DIGITS:
        return parse_digits(text, false, ret_canonical);
    case UUID_TEXT_LENGTH:
        return parse_digits(text, true, ret_canonical);
    case UUID_TEXT_LENGTH + 2:
        if (text[0] != '{' || text[UUID_TEXT_LENGTH + 1] != '}')
            return -EINVAL;
        return parse_digits(text + 1, true, ret_canonical);
    case UUID_TEXT_LENGTH + sizeof(UUID_URN_PREFIX) - 1:
        if (strncasecmp(text, UUID_URN_PREFIX, prefix) != 0)
            return -EINVAL;
        return parse_digits(text + prefix, true, ret_canonical);
    default:
        return -EINVAL;
    }
}
