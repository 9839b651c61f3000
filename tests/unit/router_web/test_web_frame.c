/* Which messages are frames, and which are dropped without a word. */
#include "unit.h"

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

static const char *const bad_frames_texts[] = {
    "x", "[]", "\"a\"", "{}", "{\"type\":1}", "{\"type\":null}", "{\"type\":\"a\"",
};

START_TEST(bad_frames)
{
    struct web_frame frame;

    ck_assert_int_eq(read_text(bad_frames_texts[_i], &frame), WEB_FRAME_BAD);
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

UNIT_MAIN_ROWS("web_frame", UNIT_TEST(members_are_found_raw), UNIT_TEST(null_data_is_data),
               UNIT_ROWS(bad_frames, bad_frames_texts), UNIT_TEST(too_deep), UNIT_TEST(silence),
               UNIT_TEST(binary_json))
