/* test_msgpack.c - what host and guest say to each other, there and back, and all that is none.
 */
#include <errno.h>
#include <string.h>

#include "codec.h"
#include "pack.h"
#include "unit.h"

static int decode(const struct type *type, const void *data, size_t size, void *ret_value)
{
    uint8_t *copy = malloc(size ? size : 1); /* exactly its size, for a sanitizer */
    int result;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, size);
    result = codec_decode_msgpack(type, copy, size, ret_value);
    free(copy);
    return result;
}

static struct fs_ls_reply ls_reply(struct fs_entry entries[2])
{
    entries[0] = (struct fs_entry){
        .name = (char *)"a", .size = UINT64_MAX, .mode = (char *)"0644", .mtime = -5
    };
    entries[1] = (struct fs_entry){ .name = (char *)"b\xEF\xBF\xBD",
                                    .is_dir = true,
                                    .mode = (char *)"0755",
                                    .mtime = INT64_MIN,
                                    .has_name_b64 = true,
                                    .name_b64 = (char *)"Yv8=" };
    return (struct fs_ls_reply){ .entries = { 2, entries } };
}

START_TEST(test_round_trip)
{
    struct fs_entry entries[2];
    struct fs_ls_reply reply = ls_reply(entries), again;
    struct buf buf = { 0 };

    ck_assert_int_eq(codec_encode_msgpack(&type_fs_ls_reply, &reply, &buf), 0);
    ck_assert_int_eq(decode(&type_fs_ls_reply, buf.data, buf.size, &again), 0);
    ck_assert_uint_eq(again.entries.count, 2);
    ck_assert_str_eq(again.entries.items[0].name, "a");
    ck_assert_uint_eq(again.entries.items[0].size, UINT64_MAX);
    ck_assert_int_eq(again.entries.items[0].mtime, -5);
    ck_assert(!again.entries.items[0].has_name_b64);
    ck_assert(again.entries.items[1].is_dir && again.entries.items[1].has_name_b64);
    ck_assert_int_eq(again.entries.items[1].mtime, INT64_MIN);
    ck_assert_str_eq(again.entries.items[1].name_b64, "Yv8=");
    codec_free(&type_fs_ls_reply, &again);
    buf_done(&buf);
}
END_TEST

START_TEST(test_request)
{
    char *files[] = { (char *)"/a", (char *)"" };
    struct fs_sed_request request = { .sandbox_id = (char *)"s",
                                      .has_files = true,
                                      .files = { 2, files },
                                      .pattern = { (char *)"a\0b", 3 },
                                      .replacement = { NULL, 0 },
                                      .recursive = true };
    struct fs_sed_request again;
    struct buf buf = { 0 };

    ck_assert_int_eq(codec_encode_msgpack(&type_fs_sed_request, &request, &buf), 0);
    ck_assert_int_eq(decode(&type_fs_sed_request, buf.data, buf.size, &again), 0);
    ck_assert_uint_eq(again.files.count, 2);
    ck_assert_str_eq(again.files.items[0], "/a");
    ck_assert_uint_eq(again.pattern.size, 3);
    ck_assert_mem_eq(again.pattern.data, "a\0b", 4);
    ck_assert_str_eq(again.replacement.data, "");
    ck_assert(again.recursive && !again.regex && !again.has_path);
    codec_free(&type_fs_sed_request, &again);
    buf_done(&buf);
}
END_TEST

START_TEST(test_cut)
{
    struct fs_entry entries[2];
    struct fs_ls_reply reply = ls_reply(entries), again;
    struct buf buf = { 0 };

    ck_assert_int_eq(codec_encode_msgpack(&type_fs_ls_reply, &reply, &buf), 0);
    for (size_t size = 0; size < buf.size; size++) {
        memset(&again, 0xAA, sizeof(again));
        ck_assert_int_eq(decode(&type_fs_ls_reply, buf.data, size, &again), -EPROTO);
        ck_assert_ptr_null(again.entries.items);
        ck_assert_uint_eq(again.entries.count, 0);
    }
    ck_assert_int_eq(buf_append_byte(&buf, 0xc0), 0);
    ck_assert_int_eq(decode(&type_fs_ls_reply, buf.data, buf.size, &again), -EPROTO);
    buf_done(&buf);
}
END_TEST

/* Absent or nil: the default, and no has_. Unknown keys are read over. */
START_TEST(test_lenient)
{
    struct fs_mkdir_request request;
    static const char text[] = "\x85\xaasandbox_id\xa1s\xa4path\xa2/a\xa7parents\xc0\xa7unknown"
                               "\x92\x01\x81\xa1x\xc4\x00\xa5other\xcb\0\0\0\0\0\0\0\0";

    ck_assert_int_eq(decode(&type_fs_mkdir_request, text, sizeof(text) - 1, &request), 0);
    ck_assert_str_eq(request.mode, "0755");
    ck_assert(!request.has_mode && !request.has_parents && !request.parents);
    codec_free(&type_fs_mkdir_request, &request);
}
END_TEST

#define ROW(text)                                                                              \
    {                                                                                          \
        text, sizeof(text) - 1                                                                 \
    }

START_TEST(test_refused)
{
    static const struct {
        const char *data;
        size_t size;
    } rows[] = {
        ROW("\x80"), /* a required key is missing */
        ROW("\x90"), /* no map */
        ROW("\x81\xa7"
            "created\x01"), /* a number is no bool */
        ROW("\x81\xa7"
            "created\xc0"), /* nil is absent */
        ROW("\x81\xc4\x07"
            "created\xc3"), /* a key is text */
        ROW("\x82\xa7"
            "created\xc3\xa7"
            "created\xc3"), /* twice */
        ROW("\xdf\xff\xff\xff\xff"),
    };
    struct fs_mkdir_reply reply;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        ck_assert_msg(decode(&type_fs_mkdir_reply, rows[i].data, rows[i].size, &reply) ==
                          -EPROTO,
                      "row %zu", i);
}
END_TEST

START_TEST(test_ranges)
{
    static const struct {
        const char *value;
        size_t size;
        int result;
    } rows[] = {
        { "\xd2\x80\x00\x00\x00", 5, 0 }, /* INT32_MIN */
        { "\xd3\xff\xff\xff\xff\x7f\xff\xff\xff", 9, -EPROTO },
        { "\xce\x7f\xff\xff\xff", 5, 0 }, /* INT32_MAX */
        { "\xce\x80\x00\x00\x00", 5, -EPROTO },
        { "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, -EPROTO },
        { "\xca\x00\x00\x00\x00", 5, -EPROTO }, /* a float is no integer */
        { "\xa1\x31", 2, -EPROTO },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct guest_exec_reply reply;
        struct buf buf = { 0 };
        int result = pack_map(&buf, 3);

        result |= pack_text(&buf, "exit_code", 9);
        result |= buf_append(&buf, rows[i].value, rows[i].size);
        result |= pack_text(&buf, "timed_out", 9) | pack_bool(&buf, false);
        result |= pack_text(&buf, "cancelled", 9) | pack_bool(&buf, false);
        ck_assert_int_eq(result, 0);
        ck_assert_msg(decode(&type_guest_exec_reply, buf.data, buf.size, &reply) ==
                          rows[i].result,
                      "row %zu", i);
        buf_done(&buf);
    }
}
END_TEST

START_TEST(test_text_rules)
{
    static const struct {
        const char *code;
        size_t size;
        int result;
    } rows[] = {
        { "S216", 4, 0 },
        { "S\0", 2, -EPROTO },
        { "0123456789abcdef", 16, 0 },
        { "0123456789abcdefg", 17, -EPROTO },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct guest_error error;
        struct buf buf = { 0 };
        int result = pack_map(&buf, 3);

        result |= pack_text(&buf, "code", 4) | pack_text(&buf, rows[i].code, rows[i].size);
        result |= pack_text(&buf, "message", 7) | pack_text(&buf, "", 0);
        result |= pack_text(&buf, "fix_parents", 11) | pack_bool(&buf, true);
        ck_assert_int_eq(result, 0);
        result = decode(&type_guest_error, buf.data, buf.size, &error);
        ck_assert_msg(result == rows[i].result, "row %zu", i);
        if (result == 0)
            codec_free(&type_guest_error, &error);
        buf_done(&buf);
    }
}
END_TEST

/* A count that its bytes could hold, of elements that are none: no memory follows it. */
START_TEST(test_hostile_count)
{
    static const uint32_t count = 4 * 1024 * 1024;
    struct guest_hello hello;
    struct buf buf = { 0 };
    int result = pack_map(&buf, 1);

    result |= pack_text(&buf, "operations", 10) | pack_array(&buf, count);
    ck_assert_int_eq(result, 0);
    ck_assert_ptr_nonnull(buf_reserve(&buf, count));
    memset(buf.data + buf.size, 0xa0, count); /* empty texts */
    buf.size += count;
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_hello, buf.data, buf.size, &hello),
                     -EPROTO);
    buf_done(&buf);
}
END_TEST

/* The peer would refuse bad text: it is repaired before it is sent. */
START_TEST(test_repair)
{
    struct guest_error error = { .code = (char *)"S216", .message = (char *)"/\xff" }, again;
    struct buf buf = { 0 };

    ck_assert_int_eq(codec_encode_msgpack(&type_guest_error, &error, &buf), 0);
    ck_assert_int_eq(decode(&type_guest_error, buf.data, buf.size, &again), 0);
    ck_assert_str_eq(again.message, "/\xEF\xBF\xBD");
    codec_free(&type_guest_error, &again);
    buf_done(&buf);
}
END_TEST

START_TEST(test_kinds_of_callers)
{
    struct create_request request = { .image = (char *)"p", .has_env = true };
    struct buf buf = { 0 };

    ck_assert_int_eq(codec_encode_msgpack(&type_create_request, &request, &buf), -EINVAL);
    ck_assert_uint_eq(buf.size, 0);
    buf_done(&buf);
}
END_TEST

UNIT_MAIN("msgpack", test_round_trip, test_request, test_cut, test_lenient, test_refused,
          test_ranges, test_text_rules, test_hostile_count, test_repair, test_kinds_of_callers)
