/* test_source_pack.c - a copy of a source: what is in it, what is not, and its limits. */
#include "source_pack.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/source-pack-XXXXXX";
static int from_fd, to_fd;
static char where[SOURCE_PACK_PATH_BYTES];

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    return remove(path);
}

static void remove_base(void)
{
    (void)nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* else left in /tmp */
}

static int open_folder(const char *name)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", base, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    fd = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(base));
    (void)atexit(remove_base);
    from_fd = open_folder("from");
    to_fd = open_folder("to");
}

static void put(const char *name, const char *text, mode_t mode)
{
    int fd = openat(from_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fchmod(fd, mode), 0);
    ck_assert_int_eq(close(fd), 0);
}

static void expect_file(const char *name, const char *text, mode_t mode)
{
    char data[64] = "";
    struct stat status;
    int fd = openat(to_fd, name, O_RDONLY | O_NOFOLLOW);

    ck_assert_msg(fd >= 0, "%s", name);
    ck_assert_int_ge(read(fd, data, sizeof(data) - 1), 0);
    ck_assert_str_eq(data, text);
    ck_assert_int_eq(fstat(fd, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, mode);
    ck_assert_int_eq(close(fd), 0);
}

static bool is_there(const char *name)
{
    return faccessat(to_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

START_TEST(test_copy)
{
    struct stat before, after;
    char target[64] = "";

    set_up();
    ck_assert_int_eq(mkdirat(from_fd, "folder", 0750), 0);
    put("file", "text", 0644);
    put("folder/program", "#!", 0755);
    put("folder/empty", "", 0400);
    ck_assert_int_eq(symlinkat("/etc/passwd", from_fd, "link"), 0);
    ck_assert_int_eq(mkfifoat(from_fd, "fifo", 0644), 0);
    ck_assert_int_eq(source_pack(from_fd, to_fd, 1 << 20, where), 0);
    expect_file("file", "text", 0644);
    expect_file("folder/program", "#!", 0755);
    expect_file("folder/empty", "", 0400);
    ck_assert_int_ge(readlinkat(to_fd, "link", target, sizeof(target) - 1), 0);
    ck_assert_str_eq(target, "/etc/passwd");
    ck_assert(!is_there("fifo"));
    ck_assert_int_eq(fstatat(from_fd, "file", &before, 0), 0);
    ck_assert_int_eq(fstatat(to_fd, "file", &after, 0), 0);
    ck_assert_int_eq(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
    ck_assert_int_eq(fstatat(to_fd, "folder", &after, 0), 0);
    ck_assert_uint_eq(after.st_mode & 07777, 0750);
}
END_TEST

START_TEST(test_limit)
{
    set_up();
    put("file", "0123456789", 0644);
    ck_assert_int_eq(source_pack(from_fd, to_fd, SOURCE_PACK_ENTRY_BYTES + 4 + 9, where),
                     -EFBIG);
    ck_assert_str_eq(where, "file");
    ck_assert_int_eq(unlinkat(to_fd, "file", 0), 0);
    ck_assert_int_eq(source_pack(from_fd, to_fd, SOURCE_PACK_ENTRY_BYTES + 4 + 10, where), 0);
}
END_TEST

/* Many empty files are not free. */
START_TEST(test_limit_of_entries)
{
    char name[16];

    set_up();
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        put(name, "", 0644);
    }
    ck_assert_int_eq(source_pack(from_fd, to_fd, 100 * SOURCE_PACK_ENTRY_BYTES, where), -EFBIG);
}
END_TEST

static void make_deep(unsigned depth)
{
    int fd = dup(from_fd);

    for (unsigned i = 0; i < depth; i++) {
        int next;

        ck_assert_int_eq(mkdirat(fd, "d", 0755), 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        ck_assert_int_ge(next, 0);
        ck_assert_int_eq(close(fd), 0);
        fd = next;
    }
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(test_depth)
{
    set_up();
    make_deep(SOURCE_PACK_DEPTH_MAX);
    ck_assert_int_eq(source_pack(from_fd, to_fd, 1 << 20, where), 0);
}
END_TEST

START_TEST(test_too_deep)
{
    set_up();
    make_deep(SOURCE_PACK_DEPTH_MAX + 1);
    ck_assert_int_eq(source_pack(from_fd, to_fd, 1 << 20, where), -ELOOP);
    ck_assert_int_eq(strncmp(where, "d/d/d", 5), 0);
}
END_TEST

UNIT_MAIN("source_pack", test_copy, test_limit, test_limit_of_entries, test_depth,
          test_too_deep)
