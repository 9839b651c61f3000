/* test_text_codes.c - uuid, base64 and hash: known answers and refusals. */
#include <errno.h>
#include <string.h>

#include "base64.h"
#include "hash.h"
#include "unit.h"
#include "uuid.h"

#define CANONICAL "0123abcd-4567-89ef-8123-456789abcdef"

START_TEST(test_uuid_random)
{
    char first[UUID_TEXT_BYTES], second[UUID_TEXT_BYTES], canonical[UUID_TEXT_BYTES];

    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(uuid_random(first), 0);
        ck_assert_int_eq(uuid_random(second), 0);
        ck_assert_str_ne(first, second);
        ck_assert_int_eq(first[14], '4');
        ck_assert_ptr_nonnull(strchr("89ab", first[19]));
        ck_assert_int_eq(uuid_parse(first, canonical), 0);
        ck_assert_str_eq(first, canonical);
    }
}
END_TEST

START_TEST(test_uuid_forms)
{
    static const char *const forms[] = {
        CANONICAL,
        "0123ABCD-4567-89EF-8123-456789ABCDEF",
        "0123abcd456789EF8123456789abcdef",
        "{0123abcd-4567-89ef-8123-456789abcdef}",
        "urn:uuid:0123abcd-4567-89ef-8123-456789abcdef",
        "URN:UUID:0123abcd-4567-89ef-8123-456789ABCDEF",
    };
    static const char *const others[] = {
        "",
        "0123abcd",
        "0123abcd-4567-89ef-8123-456789abcde",
        "0123abcd-4567-89ef-8123-456789abcdefa",
        "0123abcd-4567-89ef-8123-456789abcdeg",
        "0123abcd+4567-89ef-8123-456789abcdef",
        "0123abcd4-567-89ef-8123-456789abcdef",
        "0123abcd456789ef8123456789abcde-",
        "{0123abcd456789ef8123456789abcdef}",
        "{0123abcd-4567-89ef-8123-456789abcdef)",
        "urn:uuid:0123abcd456789ef8123456789abcdef",
        "urn-uuid:0123abcd-4567-89ef-8123-456789abcdef",
        " 0123abcd-4567-89ef-8123-456789abcdef",
    };
    char canonical[UUID_TEXT_BYTES] = "untouched";

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        ck_assert_int_eq(uuid_parse(others[i], canonical), -EINVAL);
    ck_assert_str_eq(canonical, "untouched");
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        canonical[0] = 0;
        ck_assert_int_eq(uuid_parse(forms[i], canonical), 0);
        ck_assert_str_eq(canonical, CANONICAL);
    }
}
END_TEST

/* RFC 4648, section 10. */
START_TEST(test_base64_vectors)
{
    static const char *const vectors[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
        { "\xFB\xEF\xBF", "++"
                          "+/" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        _cleanup_(buf_done)
        struct buf text = { 0 };
        _cleanup_(buf_done)
        struct buf bytes = { .limit = strlen(vectors[i][0]) };

        ck_assert_int_eq(base64_encode(&text, vectors[i][0], strlen(vectors[i][0])), 0);
        ck_assert_str_eq(buf_text(&text), vectors[i][1]);
        ck_assert_uint_eq(base64_encoded_size(strlen(vectors[i][0])), text.size);
        ck_assert_int_eq(base64_decode(&bytes, vectors[i][1], text.size), 0);
        ck_assert_str_eq(buf_text(&bytes), vectors[i][0]);
    }
}
END_TEST

START_TEST(test_base64_refuses)
{
    static const char *const wrong[] = {
        "Z",      "Zg",   "Zg=",       "Zm9",        "Zg==Zg==", "=Zg=",
        "Zg=v",   "====", "Z===",      "Zh==",       "Zm9=",     "Zm 9v",
        "Zm9v\n", "Zm-_", "Zm9v Zm9v", "\xC3\xA9zz", "Zm9vZm9",
    };
    _cleanup_(buf_done)
    struct buf bytes = { 0 };
    _cleanup_(buf_done)
    struct buf small = { .limit = 2 };

    ck_assert_int_eq(buf_append_text(&bytes, "kept"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        ck_assert_msg(base64_decode(&bytes, wrong[i], strlen(wrong[i])) == -EINVAL, "%s",
                      wrong[i]);
    ck_assert_int_eq(base64_decode(&bytes, "Zm\0v", 4), -EINVAL);
    ck_assert_str_eq(buf_text(&bytes), "kept");
    ck_assert_int_eq(base64_decode(&small, "Zm9v", 4), -ENOBUFS);
    ck_assert_int_eq(base64_encode(&small, "x", 1), -ENOBUFS);
    ck_assert_uint_eq(small.size, 0);
}
END_TEST

START_TEST(test_base64_round_trip)
{
    uint8_t data[300];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t size = 0; size <= sizeof(data); size++) {
        _cleanup_(buf_done)
        struct buf text = { 0 };
        _cleanup_(buf_done)
        struct buf bytes = { 0 };

        ck_assert_int_eq(base64_encode(&text, data, size), 0);
        ck_assert_int_eq(base64_decode(&bytes, (char *)text.data, text.size), 0);
        ck_assert_uint_eq(bytes.size, size);
        ck_assert(size == 0 || memcmp(bytes.data, data, size) == 0);
    }
}
END_TEST

/* FIPS 180-4 examples. */
START_TEST(test_hashes)
{
    struct hash_sha256 hash;
    char hex[HASH_SHA256_HEX_BYTES], again[HASH_SHA256_HEX_BYTES], sha1_hex[41];
    uint8_t sha1[HASH_SHA1_BYTES];

    hash_sha256_hex("abc", 3, hex);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_sha256_init(&hash);
    hash_sha256_update(&hash, "a", 1);
    hash_sha256_update(&hash, "", 0);
    hash_sha256_update(&hash, "bc", 2);
    hash_sha256_final_hex(&hash, again);
    ck_assert_str_eq(hex, again);
    hash_sha256_final_hex(&hash, again); /* of nothing: it started anew */
    ck_assert_str_eq(again, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_sha1("abc", 3, sha1);
    hash_hex(sha1, sizeof(sha1), sha1_hex);
    ck_assert_str_eq(sha1_hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
}
END_TEST

UNIT_MAIN("text_codes", test_uuid_random, test_uuid_forms, test_base64_vectors,
          test_base64_refuses, test_base64_round_trip, test_hashes)
