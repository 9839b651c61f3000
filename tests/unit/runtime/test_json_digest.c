/* test_json_digest.c - which JSON texts are one value. */
#include "json_digest.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static void digest(const char *text, uint8_t ret_digest[HASH_SHA256_BYTES])
{
    ck_assert_msg(json_digest(span_of_text(text), ret_digest) == 0, "no digest of %s", text);
}

static bool same(const char *a, const char *b)
{
    uint8_t left[HASH_SHA256_BYTES], right[HASH_SHA256_BYTES];

    digest(a, left);
    digest(b, right);
    return memcmp(left, right, sizeof(left)) == 0;
}

static const char *const equal[][2] = {
    { "{}", " {\n} " },
    { "{\"a\":1,\"b\":2}", "{ \"b\" : 2, \"a\" : 1 }" },
    { "{\"a\":{\"x\":[1,{\"p\":1,\"q\":2}]}}", "{\"a\":{\"x\":[1,{\"q\":2,\"p\":1}]}}" },
    { "{\"a\":1,\"a\":2}", "{\"a\":2}" },
    { "{\"a\":3,\"b\":0,\"a\":1,\"a\":2}", "{\"b\":0,\"a\":2}" },
    { "\"A\\u00e9/\"", "\"\\u0041\xc3\xa9\\/\"" },
    { "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"" },
    { "{\"\\u0061\":1}", "{\"a\":1}" },
    { "1", "1.0" },
    { "100", "1e2" },
    { "100", "0.1E+3" },
    { "0.00125", "125e-5" },
    { "-0", "0" },
    { "0", "0.0e7" },
    { "-12", "-1.2e1" },
    { "90071992547409931", "9.0071992547409931e16" },
};

START_TEST(test_equal)
{
    ck_assert_msg(same(equal[_i][0], equal[_i][1]), "%s and %s differ", equal[_i][0],
                  equal[_i][1]);
}
END_TEST

static const char *const different[][2] = {
    { "{}", "[]" },
    { "{}", "null" },
    { "[]", "[[]]" },
    { "[1,2]", "[2,1]" },
    { "[[1],2]", "[[1,2]]" },
    { "[\"a\",\"b\"]", "[\"ab\"]" },
    { "{\"a\":\"b\"}", "[\"a\",\"b\"]" },
    { "{\"a\":null}", "{}" },
    { "{\"a\":{\"b\":1}}", "{\"a\":{},\"b\":1}" },
    { "{\"a\":1,\"a\":2}", "{\"a\":1}" },
    { "1", "\"1\"" },
    { "1", "true" },
    { "true", "false" },
    { "1", "10" },
    { "1", "-1" },
    { "0.1", "0.01" },
    { "90071992547409931", "90071992547409932" },
    { "1e400", "1e401" },
    { "1e99999999999999999999", "1e99999999999999999998" },
    { "\"\"", "\"\\u0000\"" },
    { "\"a\"", "\"A\"" },
};

START_TEST(test_different)
{
    ck_assert_msg(!same(different[_i][0], different[_i][1]), "%s and %s are one",
                  different[_i][0], different[_i][1]);
}
END_TEST

START_TEST(test_no_json)
{
    uint8_t result[HASH_SHA256_BYTES];

    ck_assert_int_eq(json_digest(span_of_text(""), result), -EBADMSG);
    ck_assert_int_eq(json_digest(span_of_text("{"), result), -EBADMSG);
    ck_assert_int_eq(json_digest(span_of_text("\"\\ud800\""), result), -EBADMSG);
}
END_TEST

START_TEST(test_deep_nesting)
{
    static char text[200001];
    uint8_t result[HASH_SHA256_BYTES];

    memset(text, '[', 100000);
    memset(text + 100000, ']', 100000);
    ck_assert_int_eq(json_digest(span_of_text(text), result), -E2BIG);
}
END_TEST

UNIT_MAIN_ROWS("json_digest", UNIT_ROWS(test_equal, equal),
               UNIT_ROWS(test_different, different), UNIT_TEST(test_no_json),
               UNIT_TEST(test_deep_nesting))
