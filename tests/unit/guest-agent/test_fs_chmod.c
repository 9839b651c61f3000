/* test_fs_chmod.c - chmod (contract 8.6). */
#include <sys/wait.h>

#include "fs_scene.h"

START_TEST(chmod_rules)
{
    struct fs_chmod_request request = {
        .path = at("d"),
        .mode = (char *)(uintptr_t) "4751",
        .recursive = true,
    };
    struct fs_chmod_reply reply = { 0 };

    shell("mkdir -p d/e; touch d/f t; ln -s ../t d/l; mkfifo d/p; ln -s d l; ln -s none x");
    OK(fs_chmod(NULL, &request, &reply, &err));
    ck_assert_uint_eq(reply.updated, 4);
    ck_assert_uint_eq(mode_of("d/f"), 04751);
    ck_assert_uint_eq(mode_of("d/p"), 04751);
    ck_assert_uint_eq(mode_of("t"), 0644);
    request.path = at("l");
    request.recursive = false;
    request.mode = (char *)(uintptr_t) "700";
    OK(fs_chmod(NULL, &request, &reply, &err));
    ck_assert_uint_eq(reply.updated, 1);
    ck_assert_uint_eq(mode_of("d"), 0700);
    request.path = at("x");
    ck_assert_int_eq(CODE(fs_chmod(NULL, &request, &reply, &err)), S211);
    request.mode = (char *)(uintptr_t) "8";
    ck_assert_int_eq(CODE(fs_chmod(NULL, &request, &reply, &err)), S210);
}
END_TEST

/* chown(2) would keep the owner and succeed. */
START_TEST(chmod_refuses_the_id_that_means_none)
{
    struct fs_chmod_request request = {
        .path = at("f"),
        .mode = (char *)(uintptr_t) "0600",
        .has_uid = true,
        .uid = UINT32_MAX,
    };
    struct fs_chmod_reply reply = { 0 };

    shell("echo a > f; chmod 0644 f");
    ck_assert_int_eq(CODE(fs_chmod(NULL, &request, &reply, &err)), S210);
    request.has_uid = false;
    request.has_gid = true;
    request.gid = UINT32_MAX;
    ck_assert_int_eq(CODE(fs_chmod(NULL, &request, &reply, &err)), S210);
    ck_assert_uint_eq(mode_of("f"), 0644);
}
END_TEST

START_TEST(chmod_sets_the_owner_first)
{
    struct fs_chmod_request request = {
        .path = at("f"),
        .mode = (char *)(uintptr_t) "4755",
        .has_uid = true,
        .uid = 1234,
        .has_gid = true,
        .gid = 4321,
    };
    struct fs_chmod_reply reply = { 0 };
    struct stat status;

    if (geteuid() != 0)
        return;
    shell("touch f");
    OK(fs_chmod(NULL, &request, &reply, &err));
    ck_assert_int_eq(stat(at("f"), &status), 0);
    ck_assert_uint_eq(status.st_uid, 1234);
    ck_assert_uint_eq(status.st_gid, 4321);
    ck_assert_uint_eq(status.st_mode & 07777, 04755);
}
END_TEST

FS_MAIN("chmod", chmod_rules, chmod_refuses_the_id_that_means_none, chmod_sets_the_owner_first)
