/* test_fs_rm.c - rm (contract 8.5), and trees that are deeper than a process has descriptors.
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "fs_scene.h"

static int rm(const char *path, bool recursive)
{
    const struct fs_rm_request request = {
        .path = (char *)(uintptr_t)path,
        .recursive = recursive,
    };
    struct fs_rm_reply reply = { 0 };

    return fs_rm(NULL, &request, &reply, &err);
}

START_TEST(rm_rules)
{
    shell("touch f; mkdir -p d/e empty; touch d/e/f d/x; ln -s d l; ln -s d/x k");
    ck_assert_int_eq(CODE(rm(at("none"), false)), S211);
    ck_assert_int_eq(CODE(rm(at("none"), true)), S211);
    ck_assert_int_eq(CODE(rm(at("f/x"), true)), S212);
    ck_assert_int_eq(CODE(rm(at("d"), false)), S214);
    ck_assert(there("d/e/f"));
    OK(rm(at("empty"), false));
    OK(rm(at("l"), true));
    OK(rm(at("k"), false));
    ck_assert(there("d/x"));
    OK(rm(at("d"), true));
    ck_assert(!there("d"));
    OK(rm(at("f"), true));
    ck_assert_int_eq(CODE(rm("/", true)), S210);
    ck_assert_int_eq(CODE(rm("//", false)), S210);
    ck_assert_int_eq(CODE(rm("/tmp/..", true)), S210);
    shell("mkdir -p a/b");
    ck_assert_int_eq(CODE(rm(at("a/b/.."), true)), S214);
    ck_assert_int_eq(CODE(rm(at("a/."), true)), S216);
    ck_assert(there("a/b"));
}
END_TEST

START_TEST(rm_spares_what_is_mounted)
{
    if (geteuid() != 0)
        return; /* nothing can be mounted */
    shell("mkdir -p d/a d/m d/z; touch d/a/f");
    ck_assert_int_eq(mount("tmpfs", at("d/m"), "tmpfs", 0, NULL), 0);
    shell("touch d/m/kept");
    ck_assert_int_eq(CODE(rm(at("d/m"), true)), S216);
    ck_assert(there("d/m/kept"));
    ck_assert_int_eq(CODE(rm(at("d"), true)), S216);
    ck_assert(there("d/m/kept"));
    ck_assert(!there("d/a"));
    ck_assert_int_eq(umount(at("d/m")), 0);
}
END_TEST

START_TEST(deep_trees)
{
    enum { DEPTH = 3000 };
    const struct rlimit few = { 100, 100 };
    struct fs_chmod_reply chmod_reply = { 0 };
    struct fs_chmod_request chmod_request = {
        .path = at("deep"),
        .mode = (char *)(uintptr_t) "0750",
        .recursive = true,
    };
    int fd;

    ck_assert_int_eq(mkdir(at("deep"), 0755), 0);
    fd = open(at("deep"), O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        int next;

        ck_assert_int_eq(mkdirat(fd, "a-rather-long-name", 0755), 0);
        next = openat(fd, "a-rather-long-name", O_RDONLY | O_DIRECTORY);
        ck_assert_int_ge(next, 0);
        (void)close(fd);
        fd = next;
    }
    (void)close(openat(fd, "file", O_CREAT | O_WRONLY, 0644));
    (void)close(fd);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    OK(fs_chmod(NULL, &chmod_request, &chmod_reply, &err));
    ck_assert_uint_eq(chmod_reply.updated, DEPTH + 2);
    OK(rm(at("deep"), true));
    ck_assert(!there("deep"));
}
END_TEST

FS_MAIN("rm", rm_rules, rm_spares_what_is_mounted, deep_trees)
