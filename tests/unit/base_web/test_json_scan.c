/* What json_scan() takes and refuses, and that the walkers find what is there. */
#include <errno.h>

#include "json_scan.h"
#include "unit.h"

static struct span scan(const char *text)
{
    struct span value = { 0 };

    ck_assert_msg(json_scan(text, strlen(text), &value, NULL) == 0, "refused: %s", text);
    return value;
}

static const char *const valid_texts_texts[] = {
    "{}",
    "[]",
    " \t\r\n1 ",
    "0",
    "-0",
    "-12.5e+3",
    "1E-2",
    "\"\"",
    "\"a\\\"b\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud800\"",
    "true",
    "false",
    "null",
    "[1,[2,{\"a\":[]}],{}]",
    "{\"a\" : 1 , \"a\":{\"b\":null}}",
    "\"\xC3\xA9\"",
    "[[[]],[[]]]",
    "[{\"a\":[{}]},[]]",
};

START_TEST(valid_texts)
{
    (void)scan(valid_texts_texts[_i]);
}
END_TEST

static const struct {
    const char *text;
    size_t offset;
} invalid_texts_cases[] = {
    { "", 0 },          { "  ", 2 },       { "{", 1 },           { "[1,]", 3 },  { "[,1]", 1 },
    { "{\"a\"}", 4 },   { "{\"a\":}", 5 }, { "{\"a\":1,}", 7 },  { "{a:1}", 1 }, { "[1}", 2 },
    { "{\"a\":1]", 6 }, { "01", 1 },       { "1.", 2 },          { ".5", 0 },    { "+1", 0 },
    { "1e", 2 },        { "-", 1 },        { "truE", 3 },        { "nul", 3 },   { "\"a", 2 },
    { "\"\n\"", 1 },    { "\"\\x\"", 2 },  { "\"\\u12g4\"", 5 }, { "\"\\", 2 },  { "1 2", 2 },
    { "{} {}", 3 },     { "'a'", 0 },      { "NaN", 0 },         { "[1 2]", 3 }, { "[[1]", 4 },
};

START_TEST(invalid_texts)
{
    struct span value;
    size_t offset = 999;

    ck_assert_int_eq(json_scan(invalid_texts_cases[_i].text,
                               strlen(invalid_texts_cases[_i].text), &value, &offset),
                     -EBADMSG);
    ck_assert_msg(offset == invalid_texts_cases[_i].offset, "%s: offset %zu",
                  invalid_texts_cases[_i].text, offset);
}
END_TEST

START_TEST(bytes_that_are_no_text)
{
    struct span value;

    ck_assert_int_eq(json_scan("\"\xFF\"", 3, &value, NULL), -EBADMSG);
    ck_assert_int_eq(json_scan("\"\xED\xA0\x80\"", 5, &value, NULL), -EBADMSG);
    ck_assert_int_eq(json_scan("1\0", 2, &value, NULL), -EBADMSG);
    ck_assert_int_eq(json_scan("\"\\\0\"", 4, &value, NULL), -EBADMSG);
    ck_assert_int_eq(json_scan("-\0", 2, &value, NULL), -EBADMSG);
}
END_TEST

static int scan_nested(unsigned depth, char open, char close)
{
    char text[2 * (JSON_DEPTH_MAX + 1)];
    struct span value;

    memset(text, open, depth);
    memset(text + depth, close, depth);
    return json_scan(text, 2 * (size_t)depth, &value, NULL);
}

START_TEST(depth_is_limited)
{
    ck_assert_int_eq(scan_nested(JSON_DEPTH_MAX, '[', ']'), 0);
    ck_assert_int_eq(scan_nested(JSON_DEPTH_MAX + 1, '[', ']'), -E2BIG);
}
END_TEST

START_TEST(surrounding_space_is_no_part_of_the_value)
{
    struct span value = scan(" \n{\"a\":1}\t ");

    ck_assert(span_equals(value, "{\"a\":1}"));
}
END_TEST

START_TEST(kinds)
{
    ck_assert_int_eq(json_kind(scan("null")), JSON_NULL);
    ck_assert_int_eq(json_kind(scan("true")), JSON_BOOL);
    ck_assert_int_eq(json_kind(scan("false")), JSON_BOOL);
    ck_assert_int_eq(json_kind(scan("-1")), JSON_NUMBER);
    ck_assert_int_eq(json_kind(scan("\"x\"")), JSON_STRING);
    ck_assert_int_eq(json_kind(scan("[]")), JSON_ARRAY);
    ck_assert_int_eq(json_kind(scan("{}")), JSON_OBJECT);
}
END_TEST

START_TEST(members_are_walked_in_order)
{
    static const char *const keys[] = { "\"a\"", "\"b,}\"", "\"c\"" };
    static const char *const values[] = { "[1,{\"x\":\"]\"}]", "\"\\\"}\"", "-2.5e3" };
    struct json_iterator iterator = json_iterate(
        scan("{ \"a\" : [1,{\"x\":\"]\"}] ,\"b,}\":\"\\\"}\",\"c\":-2.5e3 }"));
    struct span key, value;

    for (int i = 0; i < 3; i++) {
        ck_assert(json_next(&iterator, &key, &value));
        ck_assert(span_equals(key, keys[i]));
        ck_assert(span_equals(value, values[i]));
    }
    ck_assert(!json_next(&iterator, &key, &value));
}
END_TEST

START_TEST(elements_are_walked_in_order)
{
    struct json_iterator iterator = json_iterate(scan("[ 1 , \"a\" , [ ] ,{}, null]"));
    static const char *const values[] = { "1", "\"a\"", "[ ]", "{}", "null" };
    struct span key, value;

    for (int i = 0; i < 5; i++) {
        ck_assert(json_next(&iterator, &key, &value));
        ck_assert_ptr_null(key.data);
        ck_assert(span_equals(value, values[i]));
    }
    ck_assert(!json_next(&iterator, &key, &value));
}
END_TEST

START_TEST(nothing_to_walk)
{
    struct json_iterator iterator = json_iterate(scan("12"));
    struct span key, value;

    ck_assert(!json_next(&iterator, &key, &value));
    iterator = json_iterate((struct span){ 0 });
    ck_assert(!json_next(&iterator, &key, &value));
}
END_TEST

START_TEST(the_last_of_a_repeated_key_counts)
{
    struct json_member members[] = { { .name = "a" }, { .name = "type" }, { .name = "no" } };

    json_find(scan("{\"a\":1,\"t\\u0079pe\":\"x\",\"a\":2,\"b\":{\"a\":3}}"), members, 3);
    ck_assert(span_equals(members[0].value, "2"));
    ck_assert(span_equals(members[1].value, "\"x\""));
    ck_assert_ptr_null(members[2].value.data);
    ck_assert(span_equals(json_get(scan("{\"b\":{}}"), "b"), "{}"));
}
END_TEST

START_TEST(strings_are_compared_as_they_mean)
{
    ck_assert(json_string_equals(scan("\"\\u0061b\""), "ab"));
    ck_assert(json_string_equals(scan("\"\\ud83d\\ude00\""), "\xF0\x9F\x98\x80"));
    ck_assert(json_string_equals(scan("\"\""), ""));
    ck_assert(!json_string_equals(scan("\"ab\""), "a"));
    ck_assert(!json_string_equals(scan("\"a\""), "ab"));
    ck_assert(!json_string_equals(scan("\"\\u0000\""), ""));
    ck_assert(!json_string_equals(scan("\"\\ud83d\""), "x"));
    ck_assert(!json_string_equals(scan("1"), "1"));
    ck_assert(!json_string_equals((struct span){ 0 }, ""));
}
END_TEST

static const struct {
    const char *json;
    const char *text;
    size_t size;
    int result;
} strings_are_decoded_cases[] = {
    { "\"plain\"", "plain", 5, 0 },
    { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8, 0 },
    { "\"\\u0041\\u00E9\\u20ac\\uD83D\\uDE00\"", "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 10,
      0 },
    { "\"a\\u0000b\"", "a\0b", 3, 0 },
    { "\"\\ud800\"", "", 0, -EILSEQ },
    { "\"\\ud800\\n\"", "", 0, -EILSEQ },
    { "\"\\ud800\\u0041\"", "", 0, -EILSEQ },
    { "\"\\udc00\"", "", 0, -EILSEQ },
    { "1", "", 0, -EINVAL },
};

START_TEST(strings_are_decoded)
{
    struct buf text = { 0 };

    ck_assert_int_eq(json_string_decode(scan(strings_are_decoded_cases[_i].json), &text),
                     strings_are_decoded_cases[_i].result);
    if (strings_are_decoded_cases[_i].result == 0) {
        ck_assert_uint_eq(text.size, strings_are_decoded_cases[_i].size);
        ck_assert_mem_eq(text.data, strings_are_decoded_cases[_i].text, text.size);
    }
    buf_done(&text);
}
END_TEST

START_TEST(decoding_respects_the_limit)
{
    struct buf text = { .limit = 3 };

    ck_assert_int_eq(json_string_decode(scan("\"abcd\""), &text), -ENOBUFS);
    ck_assert_int_eq(json_string_decode(scan("\"abc\""), &text), 0);
    buf_done(&text);
}
END_TEST

START_TEST(numbers_as_u64)
{
    uint64_t number = 7;

    ck_assert_int_eq(json_as_u64(scan("18446744073709551615"), &number), 0);
    ck_assert_uint_eq(number, UINT64_MAX);
    ck_assert_int_eq(json_as_u64(scan("18446744073709551616"), &number), -ERANGE);
    ck_assert_int_eq(json_as_u64(scan("1.0"), &number), -EINVAL);
    ck_assert_int_eq(json_as_u64(scan("1e3"), &number), -EINVAL);
    ck_assert_int_eq(json_as_u64(scan("-1"), &number), -EINVAL);
    ck_assert_int_eq(json_as_u64(scan("\"1\""), &number), -EINVAL);
    ck_assert_int_eq(json_as_u64((struct span){ 0 }, &number), -EINVAL);
}
END_TEST

UNIT_MAIN_ROWS("json_scan", UNIT_ROWS(valid_texts, valid_texts_texts),
               UNIT_ROWS(invalid_texts, invalid_texts_cases), UNIT_TEST(bytes_that_are_no_text),
               UNIT_TEST(depth_is_limited),
               UNIT_TEST(surrounding_space_is_no_part_of_the_value), UNIT_TEST(kinds),
               UNIT_TEST(members_are_walked_in_order), UNIT_TEST(elements_are_walked_in_order),
               UNIT_TEST(nothing_to_walk), UNIT_TEST(the_last_of_a_repeated_key_counts),
               UNIT_TEST(strings_are_compared_as_they_mean),
               UNIT_ROWS(strings_are_decoded, strings_are_decoded_cases),
               UNIT_TEST(decoding_respects_the_limit), UNIT_TEST(numbers_as_u64))
