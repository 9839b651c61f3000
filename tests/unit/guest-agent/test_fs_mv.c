/* test_fs_mv.c - mv (contract 8.7). */
#include <errno.h>
#include <sys/mount.h>

#include "fs_scene.h"

static int mv(const char *src, const char *dst, bool overwrite)
{
    const struct fs_mv_request request = {
        .src = (char *)(uintptr_t)src,
        .dst = (char *)(uintptr_t)dst,
        .overwrite = overwrite,
    };
    struct fs_mv_reply reply = { 0 };

    return fs_mv(NULL, &request, &reply, &err);
}

START_TEST(mv_table)
{
    shell("echo a > a; echo b > b; mkdir d e full; touch full/x; ln -s none l");
    ck_assert_int_eq(CODE(mv(at("none"), at("z"), true)), S211);
    ck_assert_int_eq(CODE(mv(at("a"), at("no/z"), true)), S211);
    ck_assert_uint_eq(err.fix_count, 0);
    ck_assert_int_eq(CODE(mv(at("a"), at("b"), false)), S213);
    ck_assert_int_eq(CODE(mv(at("a"), at("l"), false)), S213);
    ck_assert_int_eq(CODE(mv(at("a"), at("a"), false)), S213);
    ck_assert_int_eq(CODE(mv(at("a"), at("d"), false)), S213);
    ck_assert_int_eq(CODE(mv(at("a"), at("d"), true)), S212);
    ck_assert_int_eq(CODE(mv(at("d"), at("a"), true)), S212);
    ck_assert_int_eq(CODE(mv(at("d"), at("full"), true)), S214);
    ck_assert_int_eq(CODE(mv(at("d"), at("d/in"), true)), S210);
    ck_assert_int_eq(CODE(mv(at("d"), at("d/in"), false)), S210);
    ck_assert_int_eq(CODE(mv(at("a/x"), at("z"), false)), S212);
    TAKES_NOTHING_NEW(mv(at("a"), "/proc/iii", false));
    TAKES_NOTHING_NEW(mv(at("l"), "/proc/iii", true));
    ck_assert_int_eq(CODE(mv("/proc/iii", at("z"), false)), S211);
    content("a", "a\n");
    OK(mv(at("a"), at("a"), true));
    content("a", "a\n");
    OK(mv(at("d"), at("e"), true));
    ck_assert(!there("d"));
    OK(mv(at("a"), at("b"), true));
    content("b", "a\n");
    OK(mv(at("l"), at("m"), false));
    ck_assert(there("m"));
    OK(mv(at("b"), at("c/"), false));
    content("c", "a\n");
}
END_TEST

START_TEST(mv_of_one_of_two_names)
{
    shell("echo a > a; ln a b");
    OK(mv(at("a"), at("b"), true));
    ck_assert(!there("a"));
    content("b", "a\n");
    shell("ln b c");
    ck_assert_int_eq(CODE(mv(at("b"), at("c"), false)), S213);
    ck_assert(there("b"));
}
END_TEST

START_TEST(mv_to_another_file_system)
{
    struct stat status;

    if (geteuid() != 0)
        return;
    shell("echo a > a; chmod 4711 a; chown 12:34 a; touch -d @1000 a; echo b > b; mkdir d m; "
          "ln -s there l; mkfifo p");
    ck_assert_int_eq(chmod(at("a"), 04711), 0);
    ck_assert_int_eq(mount("tmpfs", at("m"), "tmpfs", 0, NULL), 0);
    OK(mv(at("a"), at("m/a"), false));
    ck_assert(!there("a"));
    ck_assert_int_eq(lstat(at("m/a"), &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 04711);
    ck_assert_uint_eq(status.st_uid, 12);
    ck_assert_uint_eq(status.st_gid, 34);
    ck_assert_int_eq(status.st_mtime, 1000);
    ck_assert_int_eq(CODE(mv(at("b"), at("m/a"), false)), S213);
    OK(mv(at("b"), at("m/a"), true));
    content("m/a", "b\n");
    OK(mv(at("l"), at("m/l"), false));
    ck_assert_int_eq(lstat(at("m/l"), &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    ck_assert_int_eq(CODE(mv(at("d"), at("m/d"), false)), S216);
    ck_assert_int_eq(CODE(mv(at("p"), at("m/p"), false)), S216);
    shell("[ $(ls -A m | wc -l) = 2 ]");
    ck_assert_int_eq(umount(at("m")), 0);
}
END_TEST

FS_MAIN("mv", mv_table, mv_of_one_of_two_names, mv_to_another_file_system)
