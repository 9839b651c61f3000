/* test_fs.c - the file operations that do not stream (contract 8), called as functions. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "codec.h"
#include "fs.h"

static char root[] = "/tmp/agent-fs-XXXXXX";
static char text[8192];
static struct sandbox_error err;

/* A path below the test's folder; good for the next few calls. */
static char *at(const char *relative)
{
    static char paths[16][4200];
    static unsigned next;
    char *path = paths[next++ % 16];

    (void)snprintf(path, sizeof(paths[0]), "%s%s%s", root, *relative ? "/" : "", relative);
    return path;
}

static void shell(const char *script)
{
    (void)snprintf(text, sizeof(text), "cd %s && { %s; }", root, script);
    ck_assert_msg(system(text) == 0, "%s", text);
}

static void start(void)
{
    (void)strcpy(root, "/tmp/agent-fs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)umask(022);
    err = (struct sandbox_error){ 0 };
}

static void stop(void)
{
    (void)snprintf(text, sizeof(text), "rm -rf %s", root);
    ck_assert_int_eq(system(text), 0);
}

static void content(const char *relative, const char *expected)
{
    static char data[65536];
    FILE *file = fopen(at(relative), "r");
    size_t size;

    ck_assert_ptr_nonnull(file);
    size = fread(data, 1, sizeof(data) - 1, file);
    data[size] = 0;
    (void)fclose(file);
    ck_assert_str_eq(data, expected);
}

/* The code of a call that is to fail. */
#define CODE(call)                                                                             \
    ({                                                                                         \
        err = (struct sandbox_error){ 0 };                                                     \
        ck_assert_int_eq(call, -1);                                                            \
        err.code;                                                                              \
    })
#define OK(call)                                                                               \
    do {                                                                                       \
        err = (struct sandbox_error){ 0 };                                                     \
        ck_assert_msg((call) == 0, "%s", err.message);                                         \
    } while (0)

/* Of proc Linux says that a new name does not exist, which tells the caller nothing. */
#define TAKES_NOTHING_NEW(call)                                                                \
    do {                                                                                       \
        ck_assert_int_eq(CODE(call), S216);                                                    \
        ck_assert_ptr_nonnull(strstr(err.message, "Operation not supported"));                 \
    } while (0)

/* ls, stat */

static int ls(const char *path, struct fs_ls_reply *reply)
{
    const struct fs_ls_request request = { .path = (char *)(uintptr_t)path };

    *reply = (struct fs_ls_reply){ 0 };
    return fs_ls(NULL, &request, reply, &err);
}

START_TEST(ls_in_byte_order)
{
    struct fs_ls_reply reply;

    shell("touch b a B _ .x é; printf x > $(printf 'n\\377'); ln -s a l; mkdir d");
    OK(ls(at(""), &reply));
    ck_assert_uint_eq(reply.entries.count, 9);
    ck_assert_str_eq(reply.entries.items[0].name, ".x");
    ck_assert_str_eq(reply.entries.items[1].name, "B");
    ck_assert_str_eq(reply.entries.items[2].name, "_");
    ck_assert_str_eq(reply.entries.items[3].name, "a");
    ck_assert(!reply.entries.items[3].has_name_b64);
    ck_assert(reply.entries.items[5].is_dir);
    ck_assert(reply.entries.items[6].is_symlink);
    ck_assert_str_eq(reply.entries.items[7].name, "n\xef\xbf\xbd");
    ck_assert_str_eq(reply.entries.items[7].name_b64, "bv8=");
    ck_assert_uint_eq(reply.entries.items[7].size, 1);
    ck_assert_str_eq(reply.entries.items[7].mode, "0644");
    codec_free(&type_fs_ls_reply, &reply);
    OK(ls(at("d///"), &reply));
    ck_assert_uint_eq(reply.entries.count, 0);
    codec_free(&type_fs_ls_reply, &reply);
}
END_TEST

START_TEST(ls_refuses)
{
    struct fs_ls_reply reply;

    shell("touch f; mkdir d; ln -s d l; mkfifo p");
    ck_assert_int_eq(CODE(ls(at("none"), &reply)), S211);
    ck_assert_int_eq(CODE(ls(at("f"), &reply)), S212);
    ck_assert_int_eq(CODE(ls(at("l"), &reply)), S212);
    ck_assert_int_eq(CODE(ls(at("l/"), &reply)), S212);
    ck_assert_int_eq(CODE(ls(at("p"), &reply)), S212);
    ck_assert_int_eq(CODE(ls(at("f/x"), &reply)), S212);
    ck_assert_int_eq(CODE(ls("relative", &reply)), S210);
    ck_assert_int_eq(CODE(ls("", &reply)), S210);
    memset(text, 'a', 4096);
    text[0] = '/';
    text[4096] = 0;
    ck_assert_int_eq(CODE(ls(text, &reply)), S210);
}
END_TEST

START_TEST(stat_of_the_object_itself)
{
    struct fs_stat_request request = { .path = at("l/") };
    struct fs_entry reply = { 0 };

    shell("printf abc > f; chmod 4750 f; touch -d @1000 f; ln -s none l");
    OK(fs_stat(NULL, &request, &reply, &err));
    ck_assert_str_eq(reply.name, "l");
    ck_assert(reply.is_symlink);
    codec_free(&type_fs_entry, &reply);
    request.path = at("f");
    OK(fs_stat(NULL, &request, &reply, &err));
    ck_assert_uint_eq(reply.size, 3);
    ck_assert_int_eq(reply.mtime, 1000);
    ck_assert_str_eq(reply.mode, "4750");
    codec_free(&type_fs_entry, &reply);
    request.path = (char *)(uintptr_t) "///";
    OK(fs_stat(NULL, &request, &reply, &err));
    ck_assert_str_eq(reply.name, "/");
    ck_assert(reply.is_dir);
    codec_free(&type_fs_entry, &reply);
    request.path = at("none");
    ck_assert_int_eq(CODE(fs_stat(NULL, &request, &reply, &err)), S211);
}
END_TEST

/* mkdir */

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

static mode_t mode_of(const char *relative)
{
    struct stat status;

    ck_assert_int_eq(lstat(at(relative), &status), 0);
    return status.st_mode & 07777;
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

/* rm */

static int rm(const char *path, bool recursive)
{
    const struct fs_rm_request request = {
        .path = (char *)(uintptr_t)path,
        .recursive = recursive,
    };
    struct fs_rm_reply reply = { 0 };

    return fs_rm(NULL, &request, &reply, &err);
}

static bool there(const char *relative)
{
    struct stat status;

    return lstat(at(relative), &status) == 0;
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

/* chmod */

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

/* mv */

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

/* grep */

static struct fs_grep_request grep_request(const char *path, const char *pattern)
{
    return (struct fs_grep_request){
        .path = (char *)(uintptr_t)path,
        .pattern = { .data = (char *)(uintptr_t)pattern, .size = strlen(pattern) },
        .recursive = true,
        .max_matches = 10000,
        .max_line_bytes = 4096,
    };
}

/* The matches as `path:line:content` lines, paths relative to the root. */
static const char *grep_text(const struct fs_grep_request *request, bool *ret_truncated)
{
    static struct buf out;
    struct fs_grep_reply reply = { 0 };

    buf_done(&out);
    OK(fs_grep(NULL, request, &reply, &err));
    for (size_t i = 0; i < reply.matches.count; i++) {
        const struct fs_grep_match *match = &reply.matches.items[i];

        (void)buf_printf(&out, "%s:%d:%s\n", match->path + strlen(root) + 1, (int)match->line,
                         match->content.data);
    }
    if (ret_truncated)
        *ret_truncated = reply.truncated;
    codec_free(&type_fs_grep_reply, &reply);
    return buf_text(&out);
}

START_TEST(grep_walks)
{
    struct fs_grep_request request = grep_request(at(""), "fo+");

    shell("mkdir -p d/e; printf 'x\\nfoo\\nbar foo' > d/f; echo FOO > d/e/g; echo fo > a; "
          "printf 'foo\\0' > bin; printf 'foo\\n\\377foo\\nfoo2\\n' > torn; ln -s d l; "
          "mkfifo p; ln -s a k");
    ck_assert_str_eq(grep_text(&request, NULL),
                     "a:1:fo\nd/f:2:foo\nd/f:3:bar foo\ntorn:1:foo\ntorn:3:foo2\n");
    request.ignore_case = true;
    request.include_glob = (struct text_list){ 1, (char *[]){ (char *)(uintptr_t) "**/e/*" } };
    ck_assert_str_eq(grep_text(&request, NULL), "d/e/g:1:FOO\n");
    request = grep_request(at("k"), "fo");
    ck_assert_str_eq(grep_text(&request, NULL), "k:1:fo\n");
    request.exclude_glob = (struct text_list){ 1, (char *[]){ (char *)(uintptr_t) "k" } };
    ck_assert_str_eq(grep_text(&request, NULL), "");
    request = grep_request(at("l"), "^x");
    ck_assert_str_eq(grep_text(&request, NULL), "l/f:1:x\n");
}
END_TEST

START_TEST(grep_limits)
{
    struct fs_grep_request request = grep_request(at("f"), "a");
    bool truncated;

    shell("printf 'a\\na\\na\\n' > f; printf 'a\\303\\251\\303\\251\\n' > g");
    request.max_matches = 3;
    ck_assert_str_eq(grep_text(&request, &truncated), "f:1:a\nf:2:a\nf:3:a\n");
    ck_assert(truncated);
    request.max_matches = 4;
    (void)grep_text(&request, &truncated);
    ck_assert(!truncated);
    request.max_matches = 0;
    (void)grep_text(&request, &truncated);
    ck_assert(!truncated);
    request = grep_request(at("g"), "a");
    request.max_line_bytes = 4;
    ck_assert_str_eq(grep_text(&request, NULL), "g:1:aé…\n");
    request.max_line_bytes = 5;
    ck_assert_str_eq(grep_text(&request, NULL), "g:1:aéé\n");
    request.max_line_bytes = 0;
    ck_assert_str_eq(grep_text(&request, NULL), "g:1:aéé\n");
    shell("head -c 3000000 /dev/zero | tr '\\0' a | fold -w 1000 > big");
    request = grep_request(at("big"), "a");
    (void)grep_text(&request, &truncated);
    ck_assert(truncated);
}
END_TEST

START_TEST(grep_refuses)
{
    struct fs_grep_request request = grep_request(at("none"), "(");
    struct fs_grep_reply reply = { 0 };

    shell("mkdir d; mkfifo p; head -c 16777217 /dev/zero | tr '\\0' a > long");
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S211);
    request.path = at("d");
    request.recursive = false;
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S217);
    request = grep_request(at("d"), "x");
    request.recursive = false;
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S210);
    request = grep_request(at("p"), "x");
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S212);
    request = grep_request(at("long"), "x");
    ck_assert_int_eq(CODE(fs_grep(NULL, &request, &reply, &err)), S216);
    codec_free(&type_fs_grep_reply, &reply);
}
END_TEST

/* sed */

static struct fs_sed_request sed_request(const char *path, const char *pattern,
                                         const char *replacement)
{
    return (struct fs_sed_request){
        .path = (char *)(uintptr_t)path,
        .pattern = { .data = (char *)(uintptr_t)pattern, .size = strlen(pattern) },
        .replacement = { .data = (char *)(uintptr_t)replacement, .size = strlen(replacement) },
        .recursive = true,
        .regex = true,
    };
}

/* Results as `path count [code]` lines, and the total. */
static const char *sed_text(const struct fs_sed_request *request)
{
    static struct buf out;
    struct fs_sed_reply reply = { 0 };

    buf_done(&out);
    OK(fs_sed(NULL, request, &reply, &err));
    for (size_t i = 0; i < reply.results.count; i++) {
        const struct fs_sed_result *result = &reply.results.items[i];
        const char *path = result->path;

        ck_assert_int_eq(result->success, !result->has_error);
        if (strncmp(path, root, strlen(root)) == 0)
            path += strlen(root) + 1;
        (void)buf_printf(&out, "%s %d%.5s\n", path, (int)result->replacements,
                         result->error ? result->error : "");
    }
    (void)buf_printf(&out, "%d", (int)reply.total_replacements);
    codec_free(&type_fs_sed_reply, &reply);
    return buf_text(&out);
}

START_TEST(sed_replaces)
{
    struct fs_sed_request request = sed_request(at(""), "(o)(x)?", "<$1>");
    struct stat status;

    shell("mkdir d; printf 'foo\\nbar\\no' > d/f; echo none > a; ln -s d/f l; chmod 4751 d/f");
    ck_assert_str_eq(sed_text(&request), "a 1\nd/f 3\n4");
    content("d/f", "f<o><o>\nbar\n<o>");
    ck_assert_uint_eq(mode_of("d/f"), 04751);
    request = sed_request(at("l"), "o", "0");
    request.first_only = true;
    ck_assert_str_eq(sed_text(&request), "l 2\n2");
    content("d/f", "f<0><o>\nbar\n<0>");
    ck_assert_int_eq(lstat(at("l"), &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    request = sed_request(at("a"), "$1", "$$");
    request.regex = false;
    ck_assert_str_eq(sed_text(&request), "a 0\n0");
    request = sed_request(at("a"), "N", "$$");
    request.regex = false;
    request.ignore_case = true;
    ck_assert_str_eq(sed_text(&request), "a 2\n2");
    content("a", "$$<o>$$e\n");
    shell("[ $(ls -A . d | grep -c iii-tmp) = 0 ]");
}
END_TEST

START_TEST(sed_of_empty_matches)
{
    struct fs_sed_request request = sed_request(at("f"), "x*", "-");

    shell("printf 'axb\\303\\251' > f");
    ck_assert_str_eq(sed_text(&request), "f 5\n5");
    content("f", "-a--b-é-");
    shell("printf 'one\\ntwo\\n' > f");
    request = sed_request(at("f"), "\\n", ",");
    ck_assert_str_eq(sed_text(&request), "f 2\n2");
    content("f", "one,two,");
    shell("printf 'one\\ntwo\\n' > f");
    request = sed_request(at("f"), "^", "> ");
    ck_assert_str_eq(sed_text(&request), "f 2\n2");
    content("f", "> one\n> two\n");
}
END_TEST

START_TEST(sed_of_listed_files)
{
    struct fs_sed_request request = sed_request(NULL, "a", "b");
    char *files[] = { at("f"), (char *)(uintptr_t) "relative", at("none"), at("p") };
    char *more[] = { at("torn"), at("d"), at("f"), at("l") };

    shell("echo aa > f; mkfifo p; printf 'a\\377' > torn; mkdir d; echo a > t; ln -s t l");
    request.files = (struct text_list){ 4, files };
    ck_assert_str_eq(sed_text(&request), "f 2\nrelative 0S210:\nnone 0S211:\np 0S212:\n2");
    request.files = (struct text_list){ 4, more };
    ck_assert_str_eq(sed_text(&request), "torn 0S216:\nd 0S212:\nf 0\nl 1\n1");
    content("t", "b\n");
}
END_TEST

START_TEST(sed_keeps_the_file_on_failure)
{
    struct fs_sed_request request = sed_request(at("f"), "(x+x+)+y|a", "b");
    struct fs_sed_reply reply = { 0 };

    shell("{ echo a; head -c 60 /dev/zero | tr '\\0' x; } > f; cp f g");
    ck_assert_str_eq(sed_text(&request), "f 0S217:\n0");
    shell("cmp f g; [ $(ls -A | wc -l) = 2 ]");
    request = sed_request("/proc/self/comm", ".", "b");
    ck_assert_int_eq(fs_sed(NULL, &request, &reply, &err), 0);
    ck_assert_str_eq(reply.results.items[0].error,
                     "S216: /proc/self/comm: Operation not supported");
    codec_free(&type_fs_sed_reply, &reply);
}
END_TEST

START_TEST(sed_refuses)
{
    struct fs_sed_request request = sed_request(NULL, "a", "b");
    struct fs_sed_reply reply = { 0 };

    shell("mkdir d; mkfifo p; ln -s none x");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    request = sed_request(at("d"), "a", "b");
    request.files = (struct text_list){ 1, (char *[]){ at("f") } };
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    request = sed_request(at("x"), "(", "b");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S211);
    request = sed_request(at("d"), "(", "b");
    request.recursive = false;
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S217);
    request = sed_request(at("d"), "a", "$1");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S217);
    request = sed_request(at("d"), "", "b");
    request.regex = false;
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    request = sed_request(at("d"), "a", "b");
    request.recursive = false;
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    request = sed_request(at("p"), "a", "b");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S212);
}
END_TEST

START_TEST(sed_of_too_many_files)
{
    struct fs_sed_request request = sed_request(at("d"), "a", "b");
    struct fs_sed_reply reply = { 0 };

    shell("mkdir d; cd d; seq 20001 | xargs touch; echo a > 1");
    ck_assert_int_eq(CODE(fs_sed(NULL, &request, &reply, &err)), S210);
    content("d/1", "a\n");
    shell("rm d/7");
    OK(fs_sed(NULL, &request, &reply, &err));
    ck_assert_uint_eq(reply.results.count, 20000);
    ck_assert_uint_eq(reply.total_replacements, 1);
    codec_free(&type_fs_sed_reply, &reply);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent-fs");
    TCase *cases = tcase_create("fs");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, start, stop);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, ls_in_byte_order);
    tcase_add_test(cases, ls_refuses);
    tcase_add_test(cases, stat_of_the_object_itself);
    tcase_add_test(cases, mkdir_table);
    tcase_add_test(cases, mkdir_refuses);
    tcase_add_test(cases, rm_rules);
    tcase_add_test(cases, rm_spares_what_is_mounted);
    tcase_add_test(cases, deep_trees);
    tcase_add_test(cases, chmod_rules);
    tcase_add_test(cases, chmod_refuses_the_id_that_means_none);
    tcase_add_test(cases, chmod_sets_the_owner_first);
    tcase_add_test(cases, mv_table);
    tcase_add_test(cases, mv_of_one_of_two_names);
    tcase_add_test(cases, mv_to_another_file_system);
    tcase_add_test(cases, grep_walks);
    tcase_add_test(cases, grep_limits);
    tcase_add_test(cases, grep_refuses);
    tcase_add_test(cases, sed_replaces);
    tcase_add_test(cases, sed_of_empty_matches);
    tcase_add_test(cases, sed_of_listed_files);
    tcase_add_test(cases, sed_keeps_the_file_on_failure);
    tcase_add_test(cases, sed_refuses);
    tcase_add_test(cases, sed_of_too_many_files);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
