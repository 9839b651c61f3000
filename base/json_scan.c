/* json_scan.c - see json_scan.h. The checker first, then the walkers over checked text. */
#include "json_scan.h"

#include <errno.h>

#include "utf8.h"

/* The checker. One bit a level says whether it is an object. */

struct scan {
    const char *at;
    const char *end;
    unsigned depth;
    uint8_t is_object[JSON_DEPTH_MAX / 8];
};

static void scan_space(struct scan *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
        scan->at++;
}

static int scan_char(struct scan *scan, char wanted)
{
    if (scan->at == scan->end || *scan->at != wanted)
        return -EBADMSG;
    scan->at++;
    return 0;
}

static int scan_literal(struct scan *scan, const char *text)
{
    for (; *text; text++) {
        if (scan_char(scan, *text) < 0)
            return -EBADMSG;
    }
    return 0;
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

static int scan_escape(struct scan *scan)
{
    if (scan->at == scan->end || !*scan->at || !strchr("\"\\/bfnrtu", *scan->at))
        return -EBADMSG;
    if (*scan->at++ != 'u')
        return 0;
    for (int i = 0; i < 4; i++, scan->at++) {
        if (scan->at == scan->end || hex_value(*scan->at) < 0)
            return -EBADMSG;
    }
    return 0;
}

static int scan_string(struct scan *scan)
{
    if (scan_char(scan, '"') < 0)
        return -EBADMSG;
    while (scan->at < scan->end && (unsigned char)*scan->at >= 0x20) {
        char c = *scan->at++;

        if (c == '"')
            return 0;
        if (c == '\\' && scan_escape(scan) < 0)
            return -EBADMSG;
    }
    return -EBADMSG;
}

static int scan_digits(struct scan *scan)
{
    const char *start = scan->at;

    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return scan->at > start ? 0 : -EBADMSG;
}

static bool scan_skip(struct scan *scan, const char *any_of)
{
    if (scan->at == scan->end || !*scan->at || !strchr(any_of, *scan->at))
        return false;
    scan->at++;
    return true;
}

static int scan_number(struct scan *scan)
{
    (void)scan_skip(scan, "-"); /* the sign is optional */
    if (!scan_skip(scan, "0") && scan_digits(scan) < 0)
        return -EBADMSG;
    if (scan_skip(scan, ".") && scan_digits(scan) < 0)
        return -EBADMSG;
    if (!scan_skip(scan, "eE"))
        return 0;
    (void)scan_skip(scan, "+-"); /* so is this one */
    return scan_digits(scan);
}

static int scan_scalar(struct scan *scan)
{
    if (scan->at == scan->end)
        return -EBADMSG;
    switch (*scan->at) {
    case '"':
        return scan_string(scan);
    case 't':
        return scan_literal(scan, "true");
    case 'f':
        return scan_literal(scan, "false");
    case 'n':
        return scan_literal(scan, "null");
    default:
        return scan_number(scan);
    }
}

static bool scan_in_object(const struct scan *scan)
{
    unsigned level = scan->depth - 1;

    return scan->is_object[level / 8] & (1u << level % 8);
}

static int scan_key(struct scan *scan)
{
    scan_space(scan);
    if (scan_string(scan) < 0)
        return -EBADMSG;
    scan_space(scan);
    return scan_char(scan, ':');
}

/* A bracket opens: *ret_empty when it closes at once. */
static int scan_open(struct scan *scan, bool *ret_empty)
{
    bool is_object = *scan->at == '{';
    uint8_t bit = (uint8_t)(1u << scan->depth % 8);

    if (scan->depth == JSON_DEPTH_MAX)
        return -E2BIG;
    if (is_object)
        scan->is_object[scan->depth / 8] |= bit;
    else
        scan->is_object[scan->depth / 8] &= (uint8_t)~bit;
    scan->depth++;
    scan->at++;
    scan_space(scan);
    *ret_empty = scan_skip(scan, is_object ? "}" : "]");
    if (*ret_empty)
        scan->depth--;
    else if (is_object)
        return scan_key(scan);
    return 0;
}

/* Behind a value: closes what closes there. 1: another value follows, 0: all is closed. */
static int scan_close(struct scan *scan)
{
    while (scan->depth > 0) {
        bool in_object = scan_in_object(scan);

        scan_space(scan);
        if (scan_skip(scan, ","))
            return in_object && scan_key(scan) < 0 ? -EBADMSG : 1;
        if (!scan_skip(scan, in_object ? "}" : "]"))
            return -EBADMSG;
        scan->depth--;
    }
    return 0;
}

static int scan_value(struct scan *scan)
{
    int more = 1;

    while (more == 1) {
        bool is_whole = true;
        int result;

        scan_space(scan);
        if (scan->at < scan->end && (*scan->at == '{' || *scan->at == '['))
            result = scan_open(scan, &is_whole);
        else
            result = scan_scalar(scan);
        if (result < 0)
            return result;
        if (is_whole)
            more = scan_close(scan);
    }
    return more;
}

int json_scan(const char *text, size_t size, struct span *ret_value, size_t *ret_offset)
{
    /* An absent span is a NULL of size 0, which takes no offset. */
    struct scan scan = { .at = text ? text : "" };
    const char *start, *end;
    int result;

    scan.end = scan.at + size;
    scan_space(&scan);
    start = scan.at;
    result = scan_value(&scan);
    end = scan.at;
    if (result == 0) {
        scan_space(&scan);
        result = scan.at == scan.end && utf8_valid(text, size) ? 0 : -EBADMSG;
    }
    if (result == 0)
        *ret_value = (struct span){ .data = start, .size = (size_t)(end - start) };
    else if (ret_offset)
        *ret_offset = (size_t)(scan.at - text);
    return result;
}

/* The walkers. They trust the text. */

enum json_kind json_kind(struct span value)
{
    switch (value.data[0]) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* AT is behind the opening quote; the result is behind the closing one. */
static const char *skip_string(const char *at, const char *end)
{
    for (; at < end && *at != '"'; at++) {
        if (*at == '\\')
            at++;
    }
    return at < end ? at + 1 : end;
}

static const char *skip_container(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        char c = *at++;

        if (c == '"')
            at = skip_string(at, end);
        else if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            break;
    }
    return at;
}

static const char *skip_value(const char *at, const char *end)
{
    if (at == end)
        return at;
    if (*at == '"')
        return skip_string(at + 1, end);
    if (*at == '{' || *at == '[')
        return skip_container(at, end);
    while (at < end && !is_space(*at) && *at != ',' && *at != '}' && *at != ']')
        at++;
    return at;
}

struct json_iterator json_iterate(struct span container)
{
    struct json_iterator iterator = { 0 };

    if (container.data && json_kind(container) >= JSON_ARRAY) {
        iterator.at = container.data + 1;
        iterator.end = container.data + container.size - 1;
        iterator.is_object = json_kind(container) == JSON_OBJECT;
    }
    return iterator;
}

static void iterator_skip(struct json_iterator *iterator, char separator)
{
    while (iterator->at < iterator->end &&
           (is_space(*iterator->at) || *iterator->at == separator))
        iterator->at++;
}

static struct span iterator_take(struct json_iterator *iterator)
{
    const char *start = iterator->at;

    iterator->at = skip_value(start, iterator->end);
    return (struct span){ .data = start, .size = (size_t)(iterator->at - start) };
}

bool json_next(struct json_iterator *iterator, struct span *ret_key, struct span *ret_value)
{
    *ret_key = (struct span){ 0 };
    iterator_skip(iterator, ',');
    if (iterator->at == iterator->end)
        return false;
    if (iterator->is_object) {
        *ret_key = iterator_take(iterator);
        iterator_skip(iterator, ':');
    }
    *ret_value = iterator_take(iterator);
    return true;
}

void json_find(struct span object, struct json_member *members, size_t count)
{
    struct json_iterator iterator = json_iterate(object);
    struct span key, value;

    for (size_t i = 0; i < count; i++)
        members[i].value = (struct span){ 0 };
    while (json_next(&iterator, &key, &value)) {
        for (size_t i = 0; i < count; i++) {
            if (json_string_equals(key, members[i].name))
                members[i].value = value;
        }
    }
}

struct span json_get(struct span object, const char *name)
{
    struct json_member member = { .name = name };

    json_find(object, &member, 1);
    return member.value;
}

/* Strings. */

static uint32_t hex4(const char *at)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++)
        value = value << 4 | (uint32_t)hex_value(at[i]);
    return value;
}

#define IS_HIGH_SURROGATE(unit) ((unit) >= 0xD800 && (unit) < 0xDC00)
#define IS_LOW_SURROGATE(unit) ((unit) >= 0xDC00 && (unit) < 0xE000)

/* *at is behind "\u" and moves behind the character; -1: half a character. */
static int64_t decode_unicode(const char **at, const char *end)
{
    uint32_t unit = hex4(*at), low;

    *at += 4;
    if (IS_LOW_SURROGATE(unit))
        return -1;
    if (!IS_HIGH_SURROGATE(unit))
        return unit;
    if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return -1;
    low = hex4(*at + 2);
    if (!IS_LOW_SURROGATE(low))
        return -1;
    *at += 6;
    return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
}

static size_t encode_utf8(uint32_t code_point, char ret_bytes[4])
{
    if (code_point < 0x80) {
        ret_bytes[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        ret_bytes[0] = (char)(0xC0 | code_point >> 6);
        ret_bytes[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        ret_bytes[0] = (char)(0xE0 | code_point >> 12);
        ret_bytes[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        ret_bytes[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    ret_bytes[0] = (char)(0xF0 | code_point >> 18);
    ret_bytes[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    ret_bytes[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    ret_bytes[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

/* *at is behind the backslash and moves behind the escape. The bytes' number; 0: no character.
 */
static size_t decode_escape(const char **at, const char *end, char ret_bytes[4])
{
    static const char names[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    char name = *(*at)++;
    int64_t code_point;

    if (name != 'u') {
        ret_bytes[0] = meanings[strchr(names, name) - names];
        return 1;
    }
    code_point = decode_unicode(at, end);
    return code_point < 0 ? 0 : encode_utf8((uint32_t)code_point, ret_bytes);
}

static bool is_string(struct span value)
{
    return value.data && value.size >= 2 && value.data[0] == '"';
}

bool json_string_equals(struct span string, const char *text)
{
    size_t left = strlen(text);
    const char *at, *end;

    if (!is_string(string))
        return false;
    at = string.data + 1;
    end = string.data + string.size - 1;
    while (at < end) {
        char bytes[4] = { *at++ };
        size_t size = bytes[0] == '\\' ? decode_escape(&at, end, bytes) : 1;

        if (size == 0 || size > left || memcmp(bytes, text, size) != 0)
            return false;
        text += size;
        left -= size;
    }
    return left == 0;
}

int json_string_decode(struct span string, struct buf *to)
{
    const char *at, *end;
    int result = 0;

    if (!is_string(string))
        return -EINVAL;
    at = string.data + 1;
    end = string.data + string.size - 1;
    while (at < end && result == 0) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        const char *plain_end = escape ? escape : end;
        char bytes[4];
        size_t size;

        result = buf_append(to, at, (size_t)(plain_end - at));
        at = plain_end;
        if (result < 0 || !escape)
            break;
        at++;
        size = decode_escape(&at, end, bytes);
        result = size > 0 ? buf_append(to, bytes, size) : -EILSEQ;
    }
    return result;
}

int json_as_u64(struct span value, uint64_t *ret_value)
{
    uint64_t number = 0;

    if (!value.data || value.size == 0)
        return -EINVAL;
    for (size_t i = 0; i < value.size; i++) {
        unsigned digit = (unsigned char)value.data[i] - '0';

        if (digit > 9)
            return -EINVAL;
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return -ERANGE;
    }
    *ret_value = number;
    return 0;
}
