/* test_env.c - names of an environment, its entries, and lists of text. */
#include <string.h>

#include "codec.h"
#include "unit.h"

static struct create_request decode(const char *env)
{
    struct create_request request;
    struct sandbox_error err = { 0 };
    struct buf text = { 0 };

    ck_assert_int_eq(buf_printf(&text, "{\"image\":\"p\",\"env\":%s}", env), 0);
    ck_assert_msg(codec_decode_json(&type_create_request, (char *)text.data, text.size,
                                    &request, &err) == 0,
                  "%s", err.message);
    buf_done(&text);
    return request;
}

START_TEST(test_check)
{
    static const struct {
        const char *env;
        const char *message; /* NULL: fine */
    } rows[] = {
        { "{}", NULL },
        { "{\"A\":\"\",\"_\":\"\",\"a_9\":\"\"}", NULL },
        { "[\"1=x\",\"\",\"-\"]", NULL },
        { "{\"\":\"\"}", "env: names must match [A-Za-z_][A-Za-z0-9_]*, got 1 bad: \"\"" },
        { "{\"A\":\"\",\"9\":\"\",\"A-B\":\"\",\"é\":\"\",\"A=\":\"\"}",
          "env: names must match [A-Za-z_][A-Za-z0-9_]*, got 4 bad: \"9\", \"A-B\", \"A=\", "
          "\"é\"" },
        { "{\"a\\nb\":\"\"}",
          "env: names must match [A-Za-z_][A-Za-z0-9_]*, got 1 bad: \"a\\nb\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct create_request request = decode(rows[i].env);
        struct sandbox_error err = { 0 };

        ck_assert_int_eq(env_check(&request.env, &err), rows[i].message ? -1 : 0);
        if (rows[i].message) {
            ck_assert_int_eq(err.code, S001);
            ck_assert_str_eq(err.message, rows[i].message);
        }
        codec_free(&type_create_request, &request);
    }
}
END_TEST

/* More bad names than a message holds. */
START_TEST(test_check_many)
{
    struct env env = { .is_object = true, .count = 3000 };
    struct sandbox_error err = { 0 };

    env.entries = calloc(env.count, sizeof(*env.entries));
    for (size_t i = 0; i < env.count; i++)
        env.entries[i].name = (char *)"bad-name";
    ck_assert_int_eq(env_check(&env, &err), -1);
    ck_assert_uint_gt(strlen(err.message), ERROR_MESSAGE_MAX - 64);
    ck_assert_ptr_nonnull(strstr(err.message, "got 3000 bad: \"bad-name\", "));
    free(env.entries);
}
END_TEST

static void check_append(const char *env, const char *const *expected, size_t count)
{
    struct create_request request = decode(env);
    struct text_list list = { 0 };

    ck_assert_int_eq(env_append(&request.env, &list), 0);
    ck_assert_uint_eq(list.count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(list.items[i], expected[i]);
    text_list_done(&list);
    codec_free(&type_create_request, &request);
}

START_TEST(test_append)
{
    check_append("[\"B=1\",\"no\",\"=x\",\"A=\",\"B==2\"]",
                 (const char *const[]){ "B=1", "A=", "B==2" }, 3);
    check_append("{\"B\":\"1\",\"A\":\"x=y\",\"C\":\"\"}",
                 (const char *const[]){ "A=x=y", "B=1", "C=" }, 3);
    check_append("[]", NULL, 0);
}
END_TEST

START_TEST(test_text_list)
{
    struct create_request request = decode("[\"A=1\",\"B=2\",\"C=3\"]");
    struct text_list list = { 0 };

    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(text_list_append(&list, "x"), 0);
    ck_assert_uint_eq(list.count, 100);
    ck_assert_int_eq(env_append(&request.env, &list), 0);
    ck_assert_str_eq(list.items[102], "C=3");
    text_list_done(&list);
    ck_assert_ptr_null(list.items);
    text_list_done(&list);
    codec_free(&type_create_request, &request);
}
END_TEST

/* A list that was decoded has room for what it holds and no more. */
START_TEST(test_append_to_decoded)
{
    static const char text[] = "{\"sandbox_id\":\"s\",\"args\":[\"a\",\"b\",\"c\"]}";
    struct exec_request request;
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(
        codec_decode_json(&type_exec_request, text, sizeof(text) - 1, &request, &err), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(text_list_append(&request.args, "d"), 0);
    ck_assert_uint_eq(request.args.count, 13);
    codec_free(&type_exec_request, &request);
}
END_TEST

UNIT_MAIN("env", test_check, test_check_many, test_append, test_text_list,
          test_append_to_decoded)
