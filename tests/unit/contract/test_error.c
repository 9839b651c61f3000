/* test_error.c - the error value and its envelope. */
#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "utf8.h"

#define BASE "https://docs/#"

static void check_envelope(const struct sandbox_error *err, const char *expected)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    ck_assert_int_eq(sandbox_error_encode(err, BASE, &text), 0);
    ck_assert_str_eq(buf_text(&text), expected);
}

START_TEST(test_envelope)
{
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(sandbox_error_set(&err, S002, "sandbox %s is not known", "x"), -1);
    check_envelope(&err,
                   "{\"type\":\"validation\",\"code\":\"S002\",\"message\":\"sandbox x is "
                   "not known\",\"docs_url\":\"" BASE "S002\",\"retryable\":false,"
                   "\"fix\":null,\"fix_note\":\"create a sandbox first\"}");
    sandbox_error_done(&err);
    ck_assert_int_eq(err.code, SANDBOX_OK);

    (void)sandbox_error_set(&err, S215, "/a: permission denied");
    check_envelope(&err,
                   "{\"type\":\"filesystem\",\"code\":\"S215\",\"message\":\"/a: permission "
                   "denied\",\"docs_url\":\"" BASE "S215\",\"retryable\":false,\"fix\":null,"
                   "\"fix_note\":null}");
}
END_TEST

START_TEST(test_first_wins)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S100, "first");
    ck_assert_int_eq(sandbox_error_set(&err, S400, "second"), -1);
    ck_assert_int_eq(err.code, S100);
    ck_assert_str_eq(err.message, "first");
}
END_TEST

START_TEST(test_fix)
{
    struct sandbox_error err = { 0 };
    char long_value[2 * ERROR_FIX_VALUE_MAX];

    (void)sandbox_error_set(&err, S211, "/a");
    sandbox_error_add_fix_bool(&err, "parents", true);
    check_envelope(&err, "{\"type\":\"filesystem\",\"code\":\"S211\",\"message\":\"/a\","
                         "\"docs_url\":\"" BASE "S211\",\"retryable\":false,"
                         "\"fix\":{\"parents\":true},"
                         "\"fix_note\":\"merge `parents: true` into the original request\"}");
    sandbox_error_done(&err);

    (void)sandbox_error_set(&err, S503, "no");
    sandbox_error_add_fix_text(&err, "vm_id", "v\"1");
    sandbox_error_add_fix_text(&err, "instance", "i");
    check_envelope(&err, "{\"type\":\"validation\",\"code\":\"S503\",\"message\":\"no\","
                         "\"docs_url\":\"" BASE "S503\",\"retryable\":false,"
                         "\"fix\":{\"vm_id\":\"v\\\"1\",\"instance\":\"i\"},"
                         "\"fix_note\":\"send that instance\"}");
    memset(long_value, 'x', sizeof(long_value) - 1);
    long_value[sizeof(long_value) - 1] = 0;
    sandbox_error_add_fix_text(&err, "long", long_value);
    ck_assert_uint_eq(strlen(err.fix[2].text), ERROR_FIX_VALUE_MAX - 1);
    ck_assert_str_eq(err.fix[2].text + ERROR_FIX_VALUE_MAX - 4, "…");
}
END_TEST

START_TEST(test_note)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S302, "x");
    ck_assert_str_eq(err.fix_note, "upgrade the side with the lower contract major");
    sandbox_error_set_note(&err, "upgrade the %s", "router");
    ck_assert_str_eq(err.fix_note, "upgrade the router");
    sandbox_error_set_note(&err, "%s", "");
    check_envelope(&err, "{\"type\":\"config\",\"code\":\"S302\",\"message\":\"x\","
                         "\"docs_url\":\"" BASE "S302\",\"retryable\":false,\"fix\":null,"
                         "\"fix_note\":null}");
}
END_TEST

/* Contract 3.4: on S300 and S301 alone. */
START_TEST(test_outcome)
{
    for (enum sandbox_code code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++) {
        _cleanup_(buf_done)
        struct buf text = { 0 };
        struct sandbox_error err = { 0 };
        const char *found;

        (void)sandbox_error_set(&err, code, "x");
        sandbox_error_set_outcome(&err,
                                  code == S300 ? OUTCOME_NEVER_RAN : OUTCOME_MAY_HAVE_RUN);
        ck_assert_int_eq(sandbox_error_encode(&err, BASE, &text), 0);
        found = strstr(buf_text(&text), "\"outcome\":");
        ck_assert_int_eq(!!found, code == S300 || code == S301);
        if (found)
            ck_assert_str_eq(found, code == S300 ? "\"outcome\":\"never_ran\"}"
                                                 : "\"outcome\":\"may_have_run\"}");
    }
}
END_TEST

static struct error_partial *partial_new(const char *out)
{
    struct error_partial *partial = calloc(1, sizeof(*partial));

    ck_assert_ptr_nonnull(partial);
    ck_assert_int_eq(buf_append_text(&partial->stdout_text, out), 0);
    partial->stdout_truncated = true;
    return partial;
}

START_TEST(test_partial)
{
    struct sandbox_error err = { 0 }, moved = { 0 };

    (void)sandbox_error_set(&err, S200, "x");
    sandbox_error_set_partial(&err, partial_new("replaced"));
    sandbox_error_set_partial(&err, partial_new("a\nb"));
    sandbox_error_move(&moved, &err);
    ck_assert_int_eq(err.code, SANDBOX_OK);
    ck_assert_ptr_null(err.partial);
    check_envelope(
        &moved, "{\"type\":\"execution\",\"code\":\"S200\",\"message\":\"x\","
                "\"docs_url\":\"" BASE "S200\",\"retryable\":false,\"fix\":null,"
                "\"fix_note\":\"raise `timeout_ms` (up to `max_exec_timeout_ms`) or split the "
                "work\",\"partial\":{\"stdout\":\"a\\nb\",\"stderr\":\"\","
                "\"stdout_truncated\":true,\"stderr_truncated\":false}}");
    moved.code = S300; /* a code that has none */
    moved.fix_note[0] = 0;
    check_envelope(&moved, "{\"type\":\"platform\",\"code\":\"S300\",\"message\":\"x\","
                           "\"docs_url\":\"" BASE "S300\",\"retryable\":false,\"fix\":null,"
                           "\"fix_note\":null}");
    sandbox_error_done(&moved);
    sandbox_error_done(&moved);
}
END_TEST

START_TEST(test_long_message)
{
    struct sandbox_error err = { 0 };
    _cleanup_(buf_done)
    struct buf text = { 0 };

    /* Characters of three bytes: wherever the cut falls, none is torn. */
    for (size_t i = 0; i < ERROR_MESSAGE_MAX; i++)
        ck_assert_int_eq(buf_append_text(&text, "€"), 0);
    for (size_t shift = 0; shift < 4; shift++) {
        const char *padding = "abc";
        size_t size;

        (void)sandbox_error_set(&err, S001, "%s%s", padding + 3 - shift % 4, buf_text(&text));
        size = strlen(err.message);
        ck_assert_uint_lt(size, ERROR_MESSAGE_MAX);
        ck_assert_uint_ge(size, ERROR_MESSAGE_MAX - 6);
        ck_assert(utf8_valid(err.message, size));
        ck_assert_str_eq(err.message + size - 3, "…");
        sandbox_error_done(&err);
    }
}
END_TEST

START_TEST(test_bad_bytes)
{
    struct sandbox_error err = { 0 };
    _cleanup_(buf_done)
    struct buf text = { 0 };

    (void)sandbox_error_set(&err, S216, "a\xff\x01\x1f\"\\b\xe2\x82");
    sandbox_error_add_fix_text(&err, "k", "\xc0");
    sandbox_error_set_note(&err, "\xf5");
    ck_assert_int_eq(sandbox_error_encode(&err, BASE "\xfe", &text), 0);
    ck_assert(utf8_valid(text.data, text.size));
    ck_assert_ptr_nonnull(strstr(buf_text(&text), "\"a\xEF\xBF\xBD\\u0001\\u001f\\\"\\\\b"
                                                  "\xEF\xBF\xBD\""));
}
END_TEST

/* What TEXT becomes, quotes included, as the standard has it. */
static void check_json(const char *text, size_t size, const char *expected)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };

    ck_assert_int_eq(json_append_string(&json, text, size), 0);
    ck_assert_str_eq(buf_text(&json), expected);
}

START_TEST(test_every_byte)
{
    static const char short_forms[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";

    for (int byte = 0; byte < 0x80; byte++) {
        const char text[] = { 'x', (char)byte, (char)byte, 'y' };
        const char *form = byte ? strchr(short_forms, byte) : NULL;
        char expected[32];

        if (form)
            (void)snprintf(expected, sizeof(expected), "\"x\\%c\\%cy\"",
                           letters[form - short_forms], letters[form - short_forms]);
        else if (byte < 0x20)
            (void)snprintf(expected, sizeof(expected), "\"x\\u%04x\\u%04xy\"", byte, byte);
        else
            (void)snprintf(expected, sizeof(expected), "\"x%c%cy\"", byte, byte);
        check_json(text, sizeof(text), expected);
    }
    check_json("", 0, "\"\"");
    check_json("ä\0€", 6, "\"ä\\u0000€\"");
}
END_TEST

/* All of it is escaped: the room is made once, and no more than is needed. */
START_TEST(test_escaped_limit)
{
    static const char zeros[10000];
    const size_t size = 6 * sizeof(zeros) + 2;
    struct buf exact = { .limit = size }, less = { .limit = size - 1 };

    ck_assert_int_eq(json_append_string(&exact, zeros, sizeof(zeros)), 0);
    ck_assert_uint_eq(exact.size, size);
    ck_assert_mem_eq(exact.data, "\"\\u0000\\u0000", 13);
    ck_assert_mem_eq(exact.data + size - 7, "\\u0000\"", 7);
    ck_assert_int_eq(json_append_string(&less, zeros, sizeof(zeros)), -ENOBUFS);
    buf_done(&exact);
    buf_done(&less);
}
END_TEST

START_TEST(test_encode_limit)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S216, "message");
    for (size_t limit = 1; limit < 100; limit++) {
        struct buf text = { .limit = limit };

        ck_assert_int_eq(sandbox_error_encode(&err, BASE, &text), -ENOBUFS);
        buf_done(&text);
    }
}
END_TEST

UNIT_MAIN("error", test_envelope, test_first_wins, test_fix, test_note, test_outcome,
          test_partial, test_long_message, test_bad_bytes, test_every_byte, test_escaped_limit,
          test_encode_limit)
