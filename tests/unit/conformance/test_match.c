/* test_match.c - patterns: each kind accepts and refuses. */
#include "match.h"
#include "unit.h"

struct sample {
    const char *pattern;
    const char *value; /* NULL: absent */
};

static bool matches(const struct sample *sample, struct buf *why)
{
    json_t *value = sample->value
                        ? json_loads(sample->value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                        : NULL;
    ck_assert(!sample->value || value);
    bool right = match_text(sample->pattern, value, why);
    json_decref(value);
    return right;
}

static const struct sample matching[] = {
    { "1", "1" },
    { "\"a\"", "\"a\"" },
    { "null", "null" },
    { "{}", "{\"a\":1}" },
    { "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1,\"c\":2},\"d\":3}" },
    { "{\"a\":\"$absent\"}", "{}" },
    { "[1,{\"x\":2}]", "[1,{\"x\":2,\"y\":3}]" },
    { "\"$any\"", "null" },
    { "\"$text\"", "\"\"" },
    { "\"$int\"", "-3" },
    { "\"$bool\"", "false" },
    { "\"$null\"", "null" },
    { "\"$uuid\"", "\"0b0aacec-1c7f-4006-9f58-004b2c8a330d\"" },
    { "\"$ref\"", "{\"channel_id\":\"a\",\"access_key\":\"b\",\"direction\":\"read\"}" },
    { "\"$re:^a+$\"", "\"aaa\"" },
    { "\"$re:é\"", "\"née\"" },
    { "\"$size:2\"", "\"é\"" },
    { "\"$len:0\"", "[]" },
    { "\"$ge:3\"", "3" },
    { "\"$le:3\"", "3" },
    { "\"$has:b\"", "\"abc\"" },
    { "\"$has:b\"", "[\"a\",\"b\"]" },
    { "\"a\\u0000b\"", "\"a\\u0000b\"" },
};

START_TEST(test_matching)
{
    struct buf why = { 0 };
    ck_assert_msg(matches(&matching[_i], &why), "%s / %s:%s", matching[_i].pattern,
                  matching[_i].value, buf_text(&why));
    buf_done(&why);
}
END_TEST

static const struct sample refused[] = {
    { "1", "2" },
    { "1", "1.0" },
    { "1", "\"1\"" },
    { "\"a\"", NULL },
    { "null", NULL },
    { "{}", "[]" },
    { "{\"a\":1}", "{}" },
    { "{\"a\":\"$absent\"}", "{\"a\":null}" },
    { "{\"a\":\"$any\"}", "{}" },
    { "[1]", "[1,2]" },
    { "[]", "{}" },
    { "\"$text\"", "1" },
    { "\"$int\"", "1.5" },
    { "\"$int\"", "\"1\"" },
    { "\"$bool\"", "1" },
    { "\"$null\"", "0" },
    { "\"$uuid\"", "\"0B0AACEC-1C7F-4006-9F58-004B2C8A330D\"" },
    { "\"$uuid\"", "\"{0b0aacec-1c7f-4006-9f58-004b2c8a330d}\"" },
    { "\"$ref\"", "{\"channel_id\":\"a\",\"access_key\":\"b\",\"direction\":\"write\"}" },
    { "\"$ref\"", "{\"channel_id\":\"a\",\"direction\":\"read\"}" },
    { "\"$re:^a+$\"", "\"ab\"" },
    { "\"$re:(\"", "\"(\"" },
    { "\"$re:1\"", "1" },
    { "\"$size:1\"", "\"é\"" },
    { "\"$len:1\"", "{\"a\":1}" },
    { "\"$ge:3\"", "2" },
    { "\"$ge:0\"", "\"1\"" },
    { "\"$le:3\"", "4" },
    { "\"$has:d\"", "\"abc\"" },
    { "\"$has:a\"", "[\"ab\"]" },
    { "no json", "1" },
};

START_TEST(test_refused)
{
    struct buf why = { 0 };
    ck_assert_msg(!matches(&refused[_i], &why), "%s / %s", refused[_i].pattern,
                  refused[_i].value);
    ck_assert_uint_gt(why.size, 0);
    buf_done(&why);
}
END_TEST

START_TEST(test_why_has_the_path)
{
    struct buf why = { 0 };
    const struct sample sample = { "{\"a\":[{\"b\":1}]}", "{\"a\":[{\"b\":2}]}" };
    ck_assert(!matches(&sample, &why));
    ck_assert_str_eq(buf_text(&why), ".a[0].b wants 1, got 2");
    buf_done(&why);
}
END_TEST

UNIT_MAIN_ROWS("match", UNIT_ROWS(test_matching, matching), UNIT_ROWS(test_refused, refused),
               UNIT_TEST(test_why_has_the_path))
