/* json_digest.c - see json_digest.h.
 *
 * Each value feeds the hash its kind, then its content behind a length, so that no two values
 * feed the same bytes. Members of an object are fed in byte order of their keys. */
#include "json_digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "json_scan.h"

/* A number in another form of the same value stays within this; longer exponents are taken as
 * they are written. */
#define EXPONENT_DIGITS_MAX 15

struct member {
    size_t key_offset; /* in the text of all keys */
    size_t key_size;
    size_t index;
    struct span value;
};

struct members {
    struct buf keys; /* decoded, one behind the other */
    struct member *items;
    size_t count;
    size_t capacity;
};

static int feed_value(struct hash_sha256 *hash, struct span value);

static void feed_number_of(struct hash_sha256 *hash, uint64_t number)
{
    hash_sha256_update(hash, &number, sizeof(number));
}

static void feed_bytes(struct hash_sha256 *hash, const void *data, size_t size)
{
    feed_number_of(hash, size);
    hash_sha256_update(hash, data, size);
}

static int feed_string(struct hash_sha256 *hash, struct span string)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int ret = json_string_decode(string, &text);

    if (ret < 0)
        return ret == -ENOMEM ? ret : -EBADMSG;
    feed_bytes(hash, text.data, text.size);
    return 0;
}

/* Digits without those zeros that change nothing, and the power of ten of the last one. */
static int feed_number(struct hash_sha256 *hash, struct span number)
{
    _cleanup_(buf_done)
    struct buf digits = { 0 };
    const char *at = number.data, *end = number.data + number.size;
    bool negative = *at == '-', fraction = false;
    long long exponent = 0;
    size_t zeros;

    for (at += negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        exponent -= fraction;
        if ((digits.size > 0 || *at != '0') && buf_append_byte(&digits, (uint8_t)*at) < 0)
            return -ENOMEM;
    }
    if (end - at > EXPONENT_DIGITS_MAX + 2) { /* e, sign, digits */
        feed_bytes(hash, number.data, number.size);
        return 0;
    }
    if (at < end) {
        char text[EXPONENT_DIGITS_MAX + 3] = { 0 };

        memcpy(text, at + 1, (size_t)(end - at - 1));
        exponent += strtoll(text, NULL, 10);
    }
    for (zeros = 0; zeros < digits.size && digits.data[digits.size - 1 - zeros] == '0'; zeros++)
        exponent++;
    digits.size -= zeros;
    if (digits.size == 0) { /* zero has one form */
        negative = false;
        exponent = 0;
    }
    feed_number_of(hash, negative);
    feed_number_of(hash, (uint64_t)exponent);
    feed_bytes(hash, digits.data, digits.size);
    return 0;
}

static int feed_array(struct hash_sha256 *hash, struct span array)
{
    struct json_iterator iterator = json_iterate(array);
    struct span key, value;
    uint64_t count = 0;
    int ret;

    for (; json_next(&iterator, &key, &value); count++) {
        ret = feed_value(hash, value);
        if (ret < 0)
            return ret;
    }
    feed_number_of(hash, count);
    return 0;
}

static int members_add(struct members *members, struct span key, struct span value)
{
    size_t offset = members->keys.size;
    int ret = json_string_decode(key, &members->keys);

    if (ret < 0)
        return ret == -ENOMEM ? ret : -EBADMSG;
    if (members->count == members->capacity) {
        size_t capacity = members->capacity ? members->capacity * 2 : 16;
        struct member *items = reallocarray(members->items, capacity, sizeof(*items));

        if (!items)
            return -ENOMEM;
        members->items = items;
        members->capacity = capacity;
    }
    members->items[members->count] = (struct member){ .key_offset = offset,
                                                      .key_size = members->keys.size - offset,
                                                      .index = members->count,
                                                      .value = value };
    members->count++;
    return 0;
}

/* Keys that are all empty have no memory. */
static const void *member_key(const struct members *members, const struct member *member)
{
    return member->key_size > 0 ? members->keys.data + member->key_offset : (const uint8_t *)"";
}

static int compare_keys(const struct members *members, const struct member *a,
                        const struct member *b)
{
    size_t shorter = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = memcmp(member_key(members, a), member_key(members, b), shorter);

    if (order != 0)
        return order;
    return (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

static int compare_members(const void *left, const void *right, void *ctx)
{
    const struct member *a = left, *b = right;
    int order = compare_keys(ctx, a, b);

    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

static int feed_members(struct hash_sha256 *hash, struct members *members)
{
    int ret = 0;

    for (size_t i = 0; ret == 0 && i < members->count; i++) {
        const struct member *member = &members->items[i];

        if (i + 1 < members->count && compare_keys(members, member, member + 1) == 0)
            continue; /* the last of a repeated key counts */
        feed_bytes(hash, member_key(members, member), member->key_size);
        ret = feed_value(hash, member->value);
    }
    return ret;
}

static int feed_object(struct hash_sha256 *hash, struct span object)
{
    struct json_iterator iterator = json_iterate(object);
    struct members members = { 0 };
    struct span key, value;
    int ret = 0;

    while (ret == 0 && json_next(&iterator, &key, &value))
        ret = members_add(&members, key, value);
    if (ret == 0 && members.count > 0) {
        qsort_r(members.items, members.count, sizeof(*members.items), compare_members,
                &members);
        ret = feed_members(hash, &members);
    }
    hash_sha256_update(hash, "}", 1);
    buf_done(&members.keys);
    free(members.items);
    return ret;
}

static int feed_value(struct hash_sha256 *hash, struct span value)
{
    enum json_kind kind = json_kind(value);

    feed_number_of(hash, kind);
    switch (kind) {
    case JSON_NULL:
        return 0;
    case JSON_BOOL:
        hash_sha256_update(hash, value.data, 1);
        return 0;
    case JSON_NUMBER:
        return feed_number(hash, value);
    case JSON_STRING:
        return feed_string(hash, value);
    case JSON_ARRAY:
        return feed_array(hash, value);
    case JSON_OBJECT:
        break;
    }
    return feed_object(hash, value);
}

int json_digest(struct span text, uint8_t ret_digest[HASH_SHA256_BYTES])
{
    struct hash_sha256 hash;
    struct span value;
    int ret = json_scan(text.data, text.size, &value, NULL);

    if (ret < 0)
        return ret;
    hash_sha256_init(&hash);
    ret = feed_value(&hash, value);
    if (ret == 0)
        hash_sha256_final(&hash, ret_digest);
    return ret;
}
