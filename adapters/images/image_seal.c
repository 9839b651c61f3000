/* image_seal.c - see image_seal.h. */
#include "image_seal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "image_file.h"

#define SUMS_MAX_BYTES (4u * 1024 * 1024)
#define IDENTITY_MAX_BYTES (64u * 1024)

/* The comment line tells a whole file from one that was cut off. */
#define SUMS_END "# complete"

static struct image_command shell_command(const char *script, const char *directory)
{
    return (struct image_command){ { "sh", "-c", script, "sh", directory, NULL } };
}

struct image_command image_seal_command(const char *directory)
{
    return shell_command("cd -- \"$1\" && find . -type f ! -path ./" IMAGE_SUMS_NAME
                         " ! -path ./" IMAGE_CHECKED_NAME
                         " -exec sha256sum -- {} + >" IMAGE_SUMS_NAME " && echo '" SUMS_END
                         "' >>" IMAGE_SUMS_NAME,
                         directory);
}

struct image_command image_check_command(const char *directory)
{
    return shell_command(
        "cd -- \"$1\" && if [ -n \"$(find . -maxdepth 1 ! -type f ! -type d ! -type l)\" ]; "
        "then echo 'neither a file nor a folder is in it' >&2; exit 1; fi; "
        "if [ \"$(tail -n 1 " IMAGE_SUMS_NAME ")\" = '" SUMS_END
        "' ]; then exec sha256sum --check --quiet --strict " IMAGE_SUMS_NAME
        "; else echo '" IMAGE_SUMS_NAME ": not complete' >&2; exit 1; fi",
        directory);
}

/* Identity. */

static int is_sealed(const struct dirent *entry)
{
    static const char *const others[] = { ".", "..", IMAGE_CHECKED_NAME };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (strcmp(entry->d_name, others[i]) == 0)
            return 0;
    return 1;
}

static int append_identity(struct buf *to, int directory_fd, const char *name)
{
    struct stat at;

    if (fstatat(directory_fd, name, &at, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return buf_printf(to, "%s %ju %ju %jo %jd %jd.%09ld %jd.%09ld\n", name,
                      (uintmax_t)at.st_dev, (uintmax_t)at.st_ino, (uintmax_t)at.st_mode,
                      (intmax_t)at.st_size, (intmax_t)at.st_mtim.tv_sec, at.st_mtim.tv_nsec,
                      (intmax_t)at.st_ctim.tv_sec, at.st_ctim.tv_nsec);
}

/* Of the files at the top level, by name. */
int image_seal_identity(const char *directory, struct buf *identity)
{
    _cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent **entries = NULL;
    int count = fd < 0 ? -1 : scandirat(fd, ".", &entries, is_sealed, alphasort);
    int ret = count < 0 ? -errno : 0;

    buf_clear(identity);
    for (int i = 0; i < count; i++) {
        if (ret == 0)
            ret = append_identity(identity, fd, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return ret;
}

static char *path_in(const char *directory, const char *name)
{
    char *path;

    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

bool image_seal_holds(const char *directory)
{
    _cleanup_(buf_done)
    struct buf known = { 0 };
    _cleanup_(buf_done)
    struct buf found = { .limit = IDENTITY_MAX_BYTES };

    return image_part_read(directory, IMAGE_CHECKED_NAME, IDENTITY_MAX_BYTES, &known) == 0 &&
           known.size > 0 && image_seal_identity(directory, &found) == 0 &&
           found.size == known.size && memcmp(found.data, known.data, known.size) == 0;
}

/* A torn write is another identity, no more. */
int image_seal_accept(const char *directory, const struct buf *identity)
{
    _cleanup_free_ char *path = path_in(directory, IMAGE_CHECKED_NAME);
    _cleanup_close_ int fd = -1;
    ssize_t written;

    if (!path)
        return -ENOMEM;
    (void)unlink(path); /* whatever has the name */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    written = fd < 0 ? -1 : write(fd, identity->data, identity->size);
    if (written < 0)
        return -errno;
    return (size_t)written == identity->size ? 0 : -EIO;
}

void image_seal_break(const char *directory)
{
    _cleanup_free_ char *path = path_in(directory, IMAGE_CHECKED_NAME);

    if (path)
        (void)unlink(path); /* without it there is nothing to break */
}

int image_seal_digest(const char *directory, char ret_digest[HASH_SHA256_HEX_BYTES])
{
    _cleanup_(buf_done)
    struct buf sums = { 0 };
    int ret = image_part_read(directory, IMAGE_SUMS_NAME, SUMS_MAX_BYTES, &sums);

    if (ret == 0)
        hash_sha256_hex(sums.data, sums.size, ret_digest);
    return ret;
}
