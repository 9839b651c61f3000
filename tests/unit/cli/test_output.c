/* How JSON is printed, and the envelope in an error. */
#include "unit.h"

#include "json_scan.h"
#include "output.h"

static struct span scan(const char *text)
{
    struct span value;

    ck_assert_int_eq(json_scan(text, strlen(text), &value, NULL), 0);
    return value;
}

static const struct {
    const char *json;
    const char *text;
} formatting_cases[] = {
    { "{\"b\":1,\"a\":[1,{\"c\":null}]}",
      "{\n  \"a\": [\n    1,\n    {\n      \"c\": null\n    }\n  ],\n  \"b\": 1\n}\n" },
    { "{}", "{}\n" },
    { "[]", "[]\n" },
    { "[ [ ] , { } ]", "[\n  [],\n  {}\n]\n" },
    { "1.50e+00", "1.50e+00\n" },
    { "123456789012345678901234567890", "123456789012345678901234567890\n" },
    { "\"\\u00e9\\u4e2d\\ud83d\\ude00\"", "\"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\"\n" },
    { "\"\\u0000\\u001f\\n\\/\\\"\"", "\"\\u0000\\u001f\\n/\\\"\"\n" },
    { "\"\\ud800\"", "\"\\ud800\"\n" },
    { "{\"a\":1,\"a\":2,\"\\u0061\":3}", "{\n  \"a\": 3\n}\n" },
    { "{\"ab\":1,\"a\":2,\"B\":3,\"\":4}",
      "{\n  \"\": 4,\n  \"B\": 3,\n  \"a\": 2,\n  \"ab\": 1\n}\n" },
    { "{\"\\ud800\":1}", "{\n  \"\\ud800\": 1\n}\n" },
    { "true", "true\n" },
};

START_TEST(formatting)
{
    struct buf text = { 0 };

    ck_assert_int_eq(output_format(scan(formatting_cases[_i].json), &text), 0);
    ck_assert_str_eq(buf_text(&text), formatting_cases[_i].text);
    buf_done(&text);
}
END_TEST

START_TEST(the_deepest_text)
{
    char json[2 * JSON_DEPTH_MAX + 1] = "";
    struct buf text = { 0 };

    memset(json, '[', JSON_DEPTH_MAX);
    memset(json + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    ck_assert_int_eq(output_format(scan(json), &text), 0);
    buf_done(&text);
}
END_TEST

static const struct {
    const char *error;
    const char *envelope;
} envelopes_cases[] = {
    { "{\"code\":\"S211\",\"message\":\"{\\\"code\\\":\\\"S211\\\",\\\"fix\\\":null}\","
      "\"type\":\"filesystem\"}",
      "{\"code\":\"S211\",\"fix\":null}" },
    { "{\"code\":\"function_not_found\",\"message\":\"no \\\"f\\\"\",\"x\":1}",
      "{\"code\":\"function_not_found\",\"message\":\"no \\\"f\\\"\"}" },
    { "{\"code\":\"x\",\"message\":\"{}\"}", "{\"code\":\"x\",\"message\":\"{}\"}" },
    { "{\"code\":\"x\",\"message\":\"5\"}", "{\"code\":\"x\",\"message\":\"5\"}" },
    { "{}", "{\"code\":\"\",\"message\":\"\"}" },
    { "\"text\"", "{\"code\":\"\",\"message\":\"\"}" },
};

START_TEST(envelopes)
{
    struct buf text = { 0 };

    ck_assert_int_eq(output_envelope(scan(envelopes_cases[_i].error), &text), 0);
    ck_assert_str_eq(buf_text(&text), envelopes_cases[_i].envelope);
    buf_done(&text);
}
END_TEST

UNIT_MAIN_ROWS("output", UNIT_ROWS(formatting, formatting_cases), UNIT_TEST(the_deepest_text),
               UNIT_ROWS(envelopes, envelopes_cases))
