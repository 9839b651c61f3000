/* test_json_encode.c - replies as contract 5 to 9 have them. */
#include <errno.h>
#include <string.h>

#include "codec.h"
#include "unit.h"

static void check_text(const struct type *type, const void *value, bool array,
                       const char *expected)
{
    struct buf out = { 0 };

    ck_assert_int_eq(codec_encode_json(type, value, array, &out), 0);
    ck_assert_str_eq(buf_text(&out), expected);
    buf_done(&out);
}

START_TEST(test_presence)
{
    struct run_reply run = { .exit_code = 3, .has_exit_code = true, .duration_ms = UINT64_MAX };
    struct fs_sed_result failed = { .path = (char *)"/a",
                                    .has_error = true,
                                    .error = (char *)"S211: /a" };

    check_text(&type_run_reply, &run, false,
               "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":3,\"timed_out\":false,"
               "\"duration_ms\":18446744073709551615,\"success\":false,"
               "\"stdout_truncated\":false,\"stderr_truncated\":false}");
    run.has_exit_code = false;
    run.has_sandbox_id = true;
    run.sandbox_id = (char *)"id";
    check_text(&type_run_reply, &run, false,
               "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":null,\"timed_out\":false,"
               "\"duration_ms\":18446744073709551615,\"success\":false,"
               "\"stdout_truncated\":false,\"stderr_truncated\":false,\"sandbox_id\":\"id\"}");
    check_text(&type_fs_sed_result, &failed, false,
               "{\"path\":\"/a\",\"replacements\":0,\"success\":false,\"error\":\"S211: /a\"}");
}
END_TEST

START_TEST(test_array)
{
    struct worker_entry entries[2] = { { .vm_id = (char *)"a", .started_at = -1 },
                                       { .vm_id = (char *)"b", .name = (char *)"n" } };
    struct worker_list_reply reply = { .items = { 2, entries } };
    struct worker_list_reply none = { 0 };

    check_text(&type_worker_list_reply, &reply, true,
               "[{\"vm_id\":\"a\",\"instance\":\"\",\"state_key\":\"\",\"name\":\"\","
               "\"state\":\"\",\"started_at\":-1},"
               "{\"vm_id\":\"b\",\"instance\":\"\",\"state_key\":\"\",\"name\":\"n\","
               "\"state\":\"\",\"started_at\":0}]");
    check_text(&type_worker_list_reply, &none, true, "[]");
    check_text(&type_worker_list_reply, &none, false, "{\"items\":[]}");
}
END_TEST

START_TEST(test_stream)
{
    struct fs_read_reply reply = {
        .content = { (char *)"c", (char *)"k", (char *)"read" },
        .has_body = true,
        .body = { (char *)"a\0\xff", 3 },
        .size = 3,
        .mode = (char *)"0644",
        .mtime = INT64_MIN,
    };

    check_text(
        &type_fs_read_reply, &reply, false,
        "{\"content\":{\"channel_id\":\"c\",\"access_key\":\"k\",\"direction\":\"read\"},"
        "\"body\":\"a\\u0000\xEF\xBF\xBD\",\"size\":3,\"mode\":\"0644\","
        "\"mtime\":-9223372036854775808}");
}
END_TEST

/* What was in the buffer stays, and stays alone. */
START_TEST(test_limit)
{
    struct fs_mkdir_reply reply = { .created = true };

    for (size_t limit = 1; limit < 17; limit++) {
        struct buf out = { 0 };

        ck_assert_int_eq(buf_append_text(&out, "before"), 0);
        out.limit = 6 + limit;
        ck_assert_int_eq(codec_encode_json(&type_fs_mkdir_reply, &reply, false, &out),
                         limit < 16 ? -ENOBUFS : 0);
        ck_assert_str_eq(buf_text(&out), limit < 16 ? "before" : "before{\"created\":true}");
        buf_done(&out);
    }
}
END_TEST

UNIT_MAIN("json_encode", test_presence, test_array, test_stream, test_limit)
