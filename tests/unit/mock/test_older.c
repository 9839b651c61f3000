/* test_older.c - answers of other minors. */
#include <string.h>

#include "older.h"
#include "unit.h"

static const char *translate(const char *operation, const char *json, unsigned minor,
                             bool extra_keys)
{
    static struct buf out;

    buf_done(&out);
    ck_assert_int_eq(older_answer(operation_find(operation, strlen(operation)), json,
                                  strlen(json), minor, extra_keys, &out),
                     0);
    return buf_text(&out);
}

START_TEST(test_keys_that_came_later_are_left_out)
{
    static const char exec[] = "{\"stdout\":\"a\",\"exit_code\":0,\"stdout_truncated\":false,"
                               "\"stderr_truncated\":true,\"success\":true}";
    static const char list[] = "[{\"sandbox_id\":\"x\",\"stopped\":false,\"created_at\":1,"
                               "\"status\":\"ready\"},{\"sandbox_id\":\"y\"}]";
    static const char ls[] =
        "{\"entries\":[{\"name\":\"a\",\"name_b64\":\"YQ==\",\"size\":1}]}";

    ck_assert_str_eq(translate("exec", exec, 0, false),
                     "{\"stdout\":\"a\",\"exit_code\":0,\"success\":true}");
    ck_assert_str_eq(translate("exec", exec, 1, false), exec);
    ck_assert_str_eq(translate("list", list, 1, false),
                     "[{\"sandbox_id\":\"x\",\"stopped\":false},{\"sandbox_id\":\"y\"}]");
    ck_assert_str_eq(translate("list", list, 2, false), list);
    ck_assert_str_eq(translate("fs::ls", ls, 1, false),
                     "{\"entries\":[{\"name\":\"a\",\"size\":1}]}");
}
END_TEST

START_TEST(test_errors)
{
    static const char error[] =
        "{\"code\":\"S300\",\"docs_url\":\"u\",\"fix\":{\"outcome\":1},\"outcome\":\"x\"}";

    ck_assert_str_eq(translate("exec", error, 1, false),
                     "{\"code\":\"S300\",\"docs_url\":\"u\",\"fix\":{\"outcome\":1}}");
    ck_assert_str_eq(translate("exec", error, 2, false), error);
}
END_TEST

START_TEST(test_keys_of_a_minor_to_come)
{
    ck_assert_ptr_nonnull(strstr(translate("exec", "{\"stdout\":\"\"}", 99, true),
                                 "{\"stdout\":\"\",\"x_future\":"));
    ck_assert_ptr_nonnull(strstr(translate("exec", "{}", 99, true), "{\"x_future\":"));
}
END_TEST

START_TEST(test_what_is_no_json)
{
    struct buf out = { 0 };

    ck_assert_int_lt(older_answer(NULL, "{", 1, 0, false, &out), 0);
    buf_done(&out);
}
END_TEST

UNIT_MAIN("mock.older", test_keys_that_came_later_are_left_out, test_errors,
          test_keys_of_a_minor_to_come, test_what_is_no_json)
