/* Which messages are frames, and which are dropped without a word. */
#include <check.h>

#include "web_frame.h"

static enum web_frame_kind read_text(const char *text, struct web_frame *ret_frame)
{
    const char *reason = NULL;
    enum web_frame_kind kind = web_frame_read(true, (const uint8_t *)text, strlen(text),
                                              ret_frame, &reason);

    if (kind == WEB_FRAME_BAD)
        ck_assert_ptr_nonnull(reason);
    return kind;
}

START_TEST(members_are_found_raw)
{
    struct web_frame frame;

    ck_assert_int_eq(
        read_text("{\"data\": [1.50, \"\\u0041\"] ,\"t\\u0079pe\":\"x\",\"id\":null,"
                  "\"invocation_id\":\"a\\u0062\"}",
                  &frame),
        WEB_FRAME_JSON);
    ck_assert(span_equals(frame.members[WEB_DATA], "[1.50, \"\\u0041\"]"));
    ck_assert(span_equals(frame.members[WEB_INVOCATION_ID], "\"a\\u0062\""));
    ck_assert_ptr_null(frame.members[WEB_ID].data);
    ck_assert_ptr_null(frame.members[WEB_ACTION].data);
}
END_TEST

START_TEST(null_data_is_data)
{
    struct web_frame frame;

    ck_assert_int_eq(read_text("{\"type\":\"x\",\"data\":null}", &frame), WEB_FRAME_JSON);
    ck_assert(span_equals(frame.members[WEB_DATA], "null"));
}
END_TEST

START_TEST(bad_frames)
{
    static const char *const texts[] = {
        "x", "[]", "\"a\"", "{}", "{\"type\":1}", "{\"type\":null}", "{\"type\":\"a\"",
    };
    struct web_frame frame;

    ck_assert_int_eq(read_text(texts[_i], &frame), WEB_FRAME_BAD);
}
END_TEST

START_TEST(too_deep)
{
    char text[2100] = "{\"type\":\"x\",\"data\":";
    struct web_frame frame;

    memset(text + strlen(text), '[', JSON_DEPTH_MAX);
    memset(text + strlen(text), ']', JSON_DEPTH_MAX);
    text[strlen(text)] = '}';
    ck_assert_int_eq(read_text(text, &frame), WEB_FRAME_BAD);
}
END_TEST

START_TEST(silence)
{
    static const char *const binaries[] = { "OTLP{}", "MTRC...", "LOGS\xFF" };
    struct web_frame frame;
    const char *reason;

    ck_assert_int_eq(read_text("", &frame), WEB_FRAME_SILENT);
    ck_assert_int_eq(read_text(" \r\n\t", &frame), WEB_FRAME_SILENT);
    ck_assert_int_eq(read_text("OTLP", &frame), WEB_FRAME_BAD);
    for (size_t i = 0; i < ARRAY_SIZE(binaries); i++)
        ck_assert_int_eq(web_frame_read(false, (const uint8_t *)binaries[i],
                                        strlen(binaries[i]), &frame, &reason),
                         WEB_FRAME_SILENT);
}
END_TEST

START_TEST(binary_json)
{
    static const char text[] = "{\"type\":\"ping\"}";
    struct web_frame frame;
    const char *reason;

    ck_assert_int_eq(
        web_frame_read(false, (const uint8_t *)text, sizeof(text) - 1, &frame, &reason),
        WEB_FRAME_JSON);
    ck_assert_int_eq(
        web_frame_read(false, (const uint8_t *)"{\"type\":\"\xFF\"}", 12, &frame, &reason),
        WEB_FRAME_BAD);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_frame");
    TCase *tests = tcase_create("web_frame");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tests);
    tcase_add_test(tests, members_are_found_raw);
    tcase_add_test(tests, null_data_is_data);
    tcase_add_loop_test(tests, bad_frames, 0, 7);
    tcase_add_test(tests, too_deep);
    tcase_add_test(tests, silence);
    tcase_add_test(tests, binary_json);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
