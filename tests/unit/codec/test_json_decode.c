/* test_json_decode.c - bodies as contract 4.1 has them, and what is said of all others. */
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "unit.h"

/* Large enough for any type, and aligned for it. */
union any {
    struct create_request create;
    struct exec_request exec;
    struct run_request run;
    struct fs_sed_request sed;
    struct fs_write_request write;
    struct worker_start_request start;
    max_align_t aligned;
    char room[1024];
};

static int decode(const struct type *type, const char *text, size_t size, union any *ret_value,
                  struct sandbox_error *err)
{
    char *copy = malloc(size ? size : 1); /* exactly its size, for a sanitizer */
    int result;

    ck_assert_ptr_nonnull(copy);
    ck_assert_uint_le(type->size, sizeof(*ret_value));
    memcpy(copy, text, size);
    result = codec_decode_json(type, copy, size, ret_value, err);
    free(copy);
    return result;
}

static bool is_zero(const void *data, size_t size)
{
    const char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

static void check_refused_bytes(const struct type *type, const char *text, size_t size,
                                const char *message)
{
    struct sandbox_error err = { 0 };
    union any value;

    memset(&value, 0xAA, sizeof(value));
    ck_assert_msg(decode(type, text, size, &value, &err) == -1, "accepted: %s", text);
    ck_assert_int_eq(err.code, S001);
    ck_assert_str_eq(err.message, message);
    ck_assert_msg(is_zero(&value, type->size), "not empty after: %s", text);
}

static void check_refused(const struct type *type, const char *text, const char *message)
{
    check_refused_bytes(type, text, strlen(text), message);
}

/* What is read is written again: REPLY is the text of all that came in. */
static void check_accepted(const struct type *type, const char *text, const char *again)
{
    struct sandbox_error err = { 0 };
    struct buf out = { 0 };
    union any value;

    ck_assert_msg(decode(type, text, strlen(text), &value, &err) == 0, "%s: %s", text,
                  err.message);
    ck_assert_int_eq(codec_encode_json(type, &value, false, &out), 0);
    ck_assert_str_eq(buf_text(&out), again);
    buf_done(&out);
    codec_free(type, &value);
    ck_assert(is_zero(&value, type->size));
}

#define CREATE &type_create_request
#define STANDARD "\"network\":false}"

START_TEST(test_body)
{
    check_refused(CREATE, "", "body: expected one JSON object, got nothing");
    check_refused(CREATE, "[]", "body: expected an object, got a list");
    check_refused(CREATE, "null", "body: expected an object, got null");
    check_refused(CREATE, "\"x\"", "body: expected an object, got \"x\"");
    check_refused(CREATE, "{",
                  "body: expected one JSON object, got text that is no JSON at byte 1");
    check_refused(CREATE, "{} {}",
                  "body: expected one JSON object, got text that is no JSON at byte 3");
    check_refused(CREATE, "{\"image\":\"p\",}",
                  "body: expected one JSON object, got text that is no JSON at byte 13");
    check_refused(CREATE, "{'image':1}",
                  "body: expected one JSON object, got text that is no JSON at byte 1");
    check_refused(CREATE, "\xEF\xBB\xBF{}",
                  "body: expected one JSON object, got text that is no JSON at byte 0");
    check_refused(CREATE, "{\"x\":\"\xff\"}", "body: expected UTF-8, got other bytes");
    check_accepted(CREATE, " \r\n\t{ \"image\" : \"p\" } ", "{\"image\":\"p\"," STANDARD);
    check_accepted(&type_list_request, "{}", "{}");
    check_accepted(&type_list_request, "{\"anything\":[1.5e3,{}]}", "{}");
}
END_TEST

/* DEPTH levels in all, the body's own included. */
static void put_nested(struct buf *to, unsigned depth)
{
    int result = buf_append_text(to, "{\"image\":\"p\",\"x\":");

    for (unsigned i = 1; i < depth && result == 0; i++)
        result = buf_append_text(to, "[");
    if (result == 0)
        result = buf_append_text(to, "1");
    for (unsigned i = 1; i < depth && result == 0; i++)
        result = buf_append_text(to, "]");
    if (result == 0)
        result = buf_append_text(to, "}");
    ck_assert_int_eq(result, 0);
}

START_TEST(test_nesting)
{
    static const unsigned refused[] = { 65, 512, 513, 5000 };
    struct buf text = { 0 };

    put_nested(&text, 64);
    check_accepted(CREATE, buf_text(&text), "{\"image\":\"p\"," STANDARD);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        buf_clear(&text);
        put_nested(&text, refused[i]);
        check_refused(CREATE, buf_text(&text),
                      "body: expected nesting of at most 64, got more");
    }
    buf_done(&text);
    /* Brackets in a string are no nesting. */
    check_accepted(
        CREATE,
        "{\"image\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
        "[[[[\\\"[[[\"}",
        "{\"image\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
        "[[[[\\\"[[[\"," STANDARD);
}
END_TEST

START_TEST(test_presence)
{
    check_refused(CREATE, "{}", "image: expected text of 1 to 512 bytes, got nothing");
    check_refused(CREATE, "{\"image\":null}",
                  "image: expected text of 1 to 512 bytes, got null");
    check_refused(CREATE, "{\"image\":\"p\",\"image\":null}",
                  "image: expected text of 1 to 512 bytes, got null");
    check_accepted(CREATE, "{\"image\":null,\"image\":\"p\",\"cpus\":null,\"network\":null}",
                   "{\"image\":\"p\"," STANDARD);
    check_accepted(CREATE, "{\"image\":5,\"image\":\"q\",\"im\\u0061ge\":\"p\"}",
                   "{\"image\":\"p\"," STANDARD);
    /* In the order of the table, whatever the order of the text. */
    check_refused(CREATE, "{\"network\":1,\"cpus\":0}",
                  "image: expected text of 1 to 512 bytes, got nothing");
    check_refused(CREATE, "{\"network\":1,\"cpus\":0,\"image\":\"p\"}",
                  "cpus: expected an integer from 1 to 4294967295, got 0");
}
END_TEST

START_TEST(test_has)
{
    static const char text[] = "{\"image\":\"p\",\"cpus\":2,\"name\":null,\"env\":[]}";
    struct sandbox_error err = { 0 };
    union any value;

    ck_assert_int_eq(decode(CREATE, text, strlen(text), &value, &err), 0);
    ck_assert(value.create.has_image && value.create.has_cpus && value.create.has_env);
    ck_assert(!value.create.has_name && !value.create.has_network &&
              !value.create.has_memory_mb);
    ck_assert_ptr_null(value.create.name);
    codec_free(CREATE, &value);

    ck_assert_int_eq(decode(&type_exec_request, "{\"sandbox_id\":\"\"}", 17, &value, &err), 0);
    ck_assert_str_eq(value.exec.cmd, "");
    ck_assert_uint_eq(value.exec.timeout_ms, 300000);
    ck_assert(!value.exec.has_timeout_ms);
    codec_free(&type_exec_request, &value);
}
END_TEST

START_TEST(test_types)
{
    static const struct {
        const char *value;
        const char *shown;
    } wrong[] = {
        { "5", "5" },       { "true", "true" },           { "1.50e3", "1.50e3" },
        { "[]", "a list" }, { "{\"a\":1}", "an object" },
    };
    char text[128], message[128];

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        (void)snprintf(text, sizeof(text), "{\"image\":%s}", wrong[i].value);
        (void)snprintf(message, sizeof(message),
                       "image: expected text of 1 to 512 bytes, got %s", wrong[i].shown);
        check_refused(CREATE, text, message);
    }
    check_refused(CREATE, "{\"image\":\"p\",\"network\":1}",
                  "network: expected true or false, got 1");
    check_refused(CREATE, "{\"image\":\"p\",\"network\":\"true\"}",
                  "network: expected true or false, got \"true\"");
    check_refused(CREATE, "{\"image\":\"p\",\"cpus\":\"5\"}",
                  "cpus: expected an integer from 1 to 4294967295, got \"5\"");
    check_refused(&type_exec_request, "{\"sandbox_id\":\"a\",\"args\":\"x\"}",
                  "args: expected a list of texts, got \"x\"");
    check_refused(&type_exec_request, "{\"sandbox_id\":\"a\",\"args\":[\"x\",null]}",
                  "args[1]: expected text, got null");
    check_refused(&type_exec_request, "{\"sandbox_id\":\"a\",\"stdin\":[]}",
                  "stdin: expected base64 text, got a list");
}
END_TEST

START_TEST(test_integers)
{
    static const char *const accepted[][2] = {
        { "0", "0" },
        { "-0", "0" },
        { "9223372036854775808", "9223372036854775808" },
        { "18446744073709551615", "18446744073709551615" },
    };
    static const char *const refused[] = {
        "-1", "1.0", "1e3", "1E0", "0.0", "-1.5", "18446744073709551616", "1e400",
    };
    char text[128], again[128];

    for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
        (void)snprintf(text, sizeof(text), "{\"image\":\"p\",\"idle_timeout_secs\":%s}",
                       accepted[i][0]);
        (void)snprintf(again, sizeof(again),
                       "{\"image\":\"p\",\"network\":false,\"idle_timeout_secs\":%s}",
                       accepted[i][1]);
        check_accepted(CREATE, text, again);
    }
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        (void)snprintf(text, sizeof(text), "{\"image\":\"p\",\"idle_timeout_secs\":%s}",
                       refused[i]);
        (void)snprintf(
            again, sizeof(again),
            "idle_timeout_secs: expected an integer from 0 to 18446744073709551615, got %s",
            refused[i]);
        check_refused(CREATE, text, again);
    }
    check_refused(CREATE, "{\"image\":\"p\",\"memory_mb\":4294967296}",
                  "memory_mb: expected an integer from 128 to 4294967295, got 4294967296");
    check_refused(CREATE, "{\"image\":\"p\",\"memory_mb\":01}",
                  "body: expected one JSON object, got text that is no JSON at byte 26");
}
END_TEST

START_TEST(test_signed)
{
    static const char *const values[] = { "-9223372036854775808", "9223372036854775807", "-1" };
    char text[128];

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        (void)snprintf(text, sizeof(text), "{\"size\":1,\"mode\":\"0644\",\"mtime\":%s}",
                       values[i]);
        check_accepted(&type_guest_fs_read_head, text, text);
    }
    check_refused(&type_guest_fs_read_head,
                  "{\"size\":1,\"mode\":\"0644\",\"mtime\":-9223372036854775809}",
                  "mtime: expected an integer from -9223372036854775808 to "
                  "9223372036854775807, got -9223372036854775809");
    check_accepted(&type_guest_exec_reply,
                   "{\"exit_code\":-2147483648,\"timed_out\":false,\"cancelled\":true}",
                   "{\"exit_code\":-2147483648,\"timed_out\":false,\"cancelled\":true}");
    check_refused(&type_guest_exec_reply,
                  "{\"exit_code\":2147483648,\"timed_out\":false,\"cancelled\":true}",
                  "exit_code: expected an integer from -2147483648 to 2147483647, got "
                  "2147483648");
}
END_TEST

START_TEST(test_text)
{
    check_refused(CREATE, "{\"image\":\"\"}",
                  "image: expected text of 1 to 512 bytes, got 0 bytes");
    check_refused(CREATE, "{\"image\":\"a\\u0000b\"}",
                  "image: expected text of 1 to 512 bytes, got text with a NUL character");
    check_accepted(CREATE, "{\"image\":\"\\u20ac\\ud83d\\ude00\\/\\u0001\"}",
                   "{\"image\":\"€😀/\\u0001\"," STANDARD);
    check_refused(
        CREATE, "{\"image\":\"p\",\"x\":\"\\ud83d\"}",
        "body: expected valid text, got half a surrogate pair in the string at byte 17");
    check_refused(
        CREATE, "{\"image\":\"p\",\"x\":\"\\ude00\\ud83d\"}",
        "body: expected valid text, got half a surrogate pair in the string at byte 17");
    check_refused(
        CREATE, "{\"image\":\"p\",\"x\":[\"\\ud83d\\\\ude00\"]}",
        "body: expected valid text, got half a surrogate pair in the string at byte 18");
    check_refused(
        CREATE, "{\"image\":\"p\",\"\\uDC00\":1}",
        "body: expected valid text, got half a surrogate pair in the string at byte 13");
    check_accepted(CREATE, "{\"image\":\"\\\\ud83d\"}", "{\"image\":\"\\\\ud83d\"," STANDARD);
}
END_TEST

/* The limit counts bytes, not characters. */
START_TEST(test_text_bytes)
{
    struct buf text = { 0 };
    int result = buf_append_text(&text, "{\"image\":\"");

    for (int i = 0; i < 171 && result == 0; i++)
        result = buf_append_text(&text, "€");
    ck_assert_int_eq(buf_append_text(&text, "\"}"), result);
    check_refused(CREATE, buf_text(&text),
                  "image: expected text of 1 to 512 bytes, got 513 bytes");
    buf_done(&text);
}
END_TEST

START_TEST(test_nul_allowed)
{
    check_accepted(&type_run_request,
                   "{\"image\":\"p\",\"lang\":\"x\",\"code\":\"a\\u0000b\",\"files\":["
                   "{\"path\":\"/a\",\"content\":\"\\u0000\"}]}",
                   "{\"image\":\"p\",\"lang\":\"x\",\"code\":\"a\\u0000b\",\"files\":["
                   "{\"path\":\"/a\",\"content\":\"\\u0000\"}],\"timeout_ms\":300000,"
                   "\"keep_sandbox\":false,\"stream\":false}");
    check_accepted(&type_fs_write_request,
                   "{\"sandbox_id\":\"s\",\"path\":\"/a\",\"content\":\"\\u0000\"}",
                   "{\"sandbox_id\":\"s\",\"path\":\"/a\",\"mode\":\"0644\",\"parents\":false,"
                   "\"content\":\"\\u0000\"}");
    check_refused(&type_run_request,
                  "{\"image\":\"p\",\"lang\":\"x\",\"code\":\"\",\"files\":["
                  "{\"path\":\"/a\\u0000\",\"content\":\"\"}]}",
                  "files[0].path: expected text, got text with a NUL character");
}
END_TEST

START_TEST(test_objects)
{
    check_refused(&type_run_request,
                  "{\"image\":\"p\",\"lang\":\"x\",\"code\":\"\",\"files\":{}}",
                  "files: expected a list of objects, got an object");
    check_refused(&type_run_request,
                  "{\"image\":\"p\",\"lang\":\"x\",\"code\":\"\",\"files\":[{\"path\":\"/a\","
                  "\"content\":\"\"},{\"path\":\"/b\"}]}",
                  "files[1].content: expected text, got nothing");
    check_refused(&type_run_request,
                  "{\"image\":\"p\",\"lang\":\"x\",\"code\":\"\",\"files\":[null]}",
                  "files[0]: expected an object, got null");
    check_refused(&type_worker_prepare_request, "{\"source\":\"/x\"}",
                  "source: expected an object, got \"/x\"");
    check_refused(&type_worker_prepare_request, "{\"source\":{}}",
                  "source.host_path: expected text of 1 to 4095 bytes, got nothing");
}
END_TEST

START_TEST(test_content)
{
    check_refused(&type_fs_write_request,
                  "{\"sandbox_id\":\"s\",\"path\":\"/a\",\"content\":5}",
                  "content: expected text or a channel reference, got 5");
    check_refused(&type_fs_write_request,
                  "{\"sandbox_id\":\"s\",\"path\":\"/a\",\"content\":{\"channel_id\":\"c\"}}",
                  "content.access_key: expected text, got nothing");
    check_refused(&type_fs_write_request,
                  "{\"sandbox_id\":\"s\",\"path\":\"/a\",\"content\":{\"channel_id\":\"c\","
                  "\"access_key\":\"k\",\"direction\":\"both\"}}",
                  "content.direction: expected \"read\" or \"write\", got \"both\"");
    check_accepted(&type_fs_write_request,
                   "{\"sandbox_id\":\"s\",\"path\":\"/a\",\"content\":{\"channel_id\":\"c\","
                   "\"direction\":\"read\",\"x\":1,\"access_key\":\"k\"}}",
                   "{\"sandbox_id\":\"s\",\"path\":\"/a\",\"mode\":\"0644\",\"parents\":false,"
                   "\"content\":{\"channel_id\":\"c\",\"access_key\":\"k\","
                   "\"direction\":\"read\"}}");
}
END_TEST

START_TEST(test_secrets_are_not_shown)
{
    check_refused(&type_worker_stop_request,
                  "{\"vm_id\":\"v\",\"instance\":\"i\",\"auth_token\":123456}",
                  "auth_token: expected text of 1 to 256 bytes, got another type");
    check_refused(&type_fs_write_request,
                  "{\"sandbox_id\":\"s\",\"path\":\"/a\",\"content\":{\"channel_id\":\"c\","
                  "\"access_key\":123456}}",
                  "content.access_key: expected text, got another type");
}
END_TEST

START_TEST(test_env)
{
    check_refused(CREATE, "{\"image\":\"p\",\"env\":\"A=1\"}",
                  "env: expected a list of \"NAME=VALUE\" or an object of texts, got \"A=1\"");
    check_refused(CREATE, "{\"image\":\"p\",\"env\":[\"A=1\",5]}",
                  "env[1]: expected text, got 5");
    check_refused(CREATE, "{\"image\":\"p\",\"env\":{\"A\":null}}",
                  "env.A: expected text, got null");
    check_refused(CREATE, "{\"image\":\"p\",\"env\":{\"A\\u0000\":\"\"}}",
                  "env: expected text, got text with a NUL character");
    check_refused(CREATE, "{\"image\":\"p\",\"env\":{\"A\":\"\\u0000\"}}",
                  "env.A: expected text, got text with a NUL character");
    check_accepted(CREATE, "{\"image\":\"p\",\"env\":[\"B=1\",\"A==\",\"C\",\"=x\",\"\"]}",
                   "{\"image\":\"p\",\"network\":false,"
                   "\"env\":[\"B=1\",\"A==\",\"C\",\"=x\",\"\"]}");
    /* Byte order; of a name given twice the last counts, whatever the first was. */
    check_accepted(CREATE,
                   "{\"image\":\"p\",\"env\":{\"b\":\"1\",\"A\":5,\"a\":\"\",\"A\":\"2\"}}",
                   "{\"image\":\"p\",\"network\":false,"
                   "\"env\":{\"A\":\"2\",\"a\":\"\",\"b\":\"1\"}}");
}
END_TEST

START_TEST(test_long_values_are_shortened)
{
    check_refused(
        CREATE,
        "{\"image\":\"p\",\"network\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaa€aaaaaaaaaaaaaaaaaaaaaaaa\"}",
        "network: expected true or false, got \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaa…");
}
END_TEST

static void put_list(struct buf *to, size_t count)
{
    int result = buf_append_text(to, "{\"sandbox_id\":\"s\",\"args\":[");

    for (size_t i = 0; i < count && result == 0; i++)
        result = buf_append_text(to, i > 0 ? ",\"\"" : "\"\"");
    if (result == 0)
        result = buf_append_text(to, "]}");
    ck_assert_int_eq(result, 0);
}

START_TEST(test_list_entries)
{
    struct sandbox_error err = { 0 };
    struct buf text = { 0 };
    union any value;

    put_list(&text, LIMIT_LIST_ENTRIES);
    ck_assert_int_eq(decode(&type_exec_request, (char *)text.data, text.size, &value, &err), 0);
    ck_assert_uint_eq(value.exec.args.count, LIMIT_LIST_ENTRIES);
    codec_free(&type_exec_request, &value);
    buf_clear(&text);
    put_list(&text, LIMIT_LIST_ENTRIES + 1);
    check_refused_bytes(&type_exec_request, (char *)text.data, text.size,
                        "args: expected at most 1048576 entries, got 1048577");
    buf_done(&text);
}
END_TEST

/* A text cut anywhere is no body. */
START_TEST(test_cut)
{
    static const char text[] = "{\"image\":\"p\\u20ac\",\"env\":{\"A\":\"b\"},\"cpus\":12}";
    struct sandbox_error err = { 0 };
    union any value;

    for (size_t size = 0; size < sizeof(text) - 1; size++) {
        ck_assert_int_eq(decode(CREATE, text, size, &value, &err), -1);
        sandbox_error_done(&err);
    }
    ck_assert_int_eq(decode(CREATE, text, sizeof(text) - 1, &value, &err), 0);
    codec_free(CREATE, &value);
}
END_TEST

UNIT_MAIN("json_decode", test_body, test_nesting, test_presence, test_has, test_types,
          test_integers, test_signed, test_text, test_text_bytes, test_nul_allowed,
          test_objects, test_content, test_secrets_are_not_shown, test_env,
          test_long_values_are_shortened, test_list_entries, test_cut)
