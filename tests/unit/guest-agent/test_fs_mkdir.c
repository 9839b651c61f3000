/* test_fs_mkdir.c - mkdir (contract 8.4). */
#include "fs_scene.h"

static int mkdir_op(const char *path, const char *mode, bool parents,
                    struct fs_mkdir_reply *reply)
{
    const struct fs_mkdir_request request = {
        .path = (char *)(uintptr_t)path,
        .mode = (char *)(uintptr_t)mode,
        .parents = parents,
    };

    *reply = (struct fs_mkdir_reply){ 0 };
    return fs_mkdir(NULL, &request, reply, &err);
}

START_TEST(mkdir_table)
{
    struct fs_mkdir_reply reply;

    shell("touch f; mkdir d; ln -s d l; ln -s none x");
    OK(mkdir_op(at("a"), "2777", false, &reply));
    ck_assert(reply.created);
    ck_assert_uint_eq(mode_of("a"), 02777);
    OK(mkdir_op(at("p/q/r"), "0700", true, &reply));
    ck_assert(reply.created);
    ck_assert_uint_eq(mode_of("p"), 0755);
    ck_assert_uint_eq(mode_of("p/q/r"), 0700);
    OK(mkdir_op(at("d"), "0700", true, &reply));
    ck_assert(!reply.created);
    ck_assert_uint_eq(mode_of("d"), 0755);
    OK(mkdir_op(at("l"), "0700", true, &reply));
    ck_assert(!reply.created);
    OK(mkdir_op(at("l/in"), "0700", true, &reply));
    ck_assert_uint_eq(mode_of("d/in"), 0700);
    OK(mkdir_op(at("n1/../n2"), "0700", true, &reply));
    ck_assert_uint_eq(mode_of("n2"), 0700);
    OK(mkdir_op("/", "0700", true, &reply));
    ck_assert(!reply.created);
}
END_TEST

START_TEST(mkdir_refuses)
{
    struct fs_mkdir_reply reply;

    shell("touch f; mkdir d; ln -s d l; ln -s none x");
    ck_assert_int_eq(CODE(mkdir_op(at("d"), "0755", false, &reply)), S213);
    ck_assert_int_eq(CODE(mkdir_op(at("l"), "0755", false, &reply)), S213);
    ck_assert_int_eq(CODE(mkdir_op(at("f"), "0755", false, &reply)), S213);
    ck_assert_int_eq(CODE(mkdir_op(at("x"), "0755", false, &reply)), S213);
    ck_assert_int_eq(CODE(mkdir_op("/", "0755", false, &reply)), S213);
    ck_assert_int_eq(CODE(mkdir_op(at("f"), "0755", true, &reply)), S212);
    ck_assert_int_eq(CODE(mkdir_op(at("x"), "0755", true, &reply)), S212);
    ck_assert_int_eq(CODE(mkdir_op(at("f/a"), "0755", false, &reply)), S212);
    ck_assert_int_eq(CODE(mkdir_op(at("f/a"), "0755", true, &reply)), S212);
    ck_assert_int_eq(CODE(mkdir_op(at("f/a/b"), "0755", true, &reply)), S212);
    ck_assert_int_eq(CODE(mkdir_op(at("x/a"), "0755", true, &reply)), S212);
    ck_assert_int_eq(CODE(mkdir_op(at("p/q"), "0755", false, &reply)), S211);
    ck_assert_uint_eq(err.fix_count, 1);
    ck_assert_str_eq(err.fix[0].key, "parents");
    TAKES_NOTHING_NEW(mkdir_op("/proc/iii", "0755", false, &reply));
    TAKES_NOTHING_NEW(mkdir_op("/proc/iii/a", "0755", true, &reply));
    ck_assert_int_eq(CODE(mkdir_op("/proc/iii/a", "0755", false, &reply)), S211);
    ck_assert_int_eq(CODE(mkdir_op(at("p/q"), "9", true, &reply)), S210);
    ck_assert_int_eq(CODE(mkdir_op(at("p/q"), "", true, &reply)), S210);
    ck_assert_int_eq(CODE(mkdir_op(at("p/q"), "0o755", true, &reply)), S210);
    ck_assert_int_eq(CODE(mkdir_op(at("p/q"), "10000", true, &reply)), S210);
    ck_assert_int_eq(CODE(mkdir_op(at("p/q"), "000755", true, &reply)), S210);
}
END_TEST

FS_MAIN("mkdir", mkdir_table, mkdir_refuses)
