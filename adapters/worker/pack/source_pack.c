/* source_pack.c - see source_pack.h. */
#include "source_pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"

struct pack {
    uint64_t left_bytes;
    unsigned depth;
    char *path; /* of what is being copied, relative; SOURCE_PACK_PATH_BYTES */
    /* For one entry at a time, so that no folder on the way to it has one on the stack. */
    union {
        char bytes[65536];
        char link[PATH_MAX];
    } scratch;
};

static int pack_folder(struct pack *pack, int source_fd, int target_fd);

static int take_bytes(struct pack *pack, uint64_t size)
{
    if (size > pack->left_bytes)
        return -EFBIG;
    pack->left_bytes -= size;
    return 0;
}

/* Mode and times of a finished copy. */
static int copy_status(int target_fd, const struct stat *status)
{
    const struct timespec times[] = { status->st_atim, status->st_mtim };

    if (fchmod(target_fd, status->st_mode & 07777) < 0 || futimens(target_fd, times) < 0)
        return -errno;
    return 0;
}

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t done = write(fd, data, size);

        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            data += done;
            size -= (size_t)done;
        }
    }
    return 0;
}

/* To the end of the file, however it grows meanwhile; the limit holds. */
static int copy_bytes(struct pack *pack, int source_fd, int target_fd)
{
    char *data = pack->scratch.bytes;

    for (;;) {
        ssize_t size = read(source_fd, data, sizeof(pack->scratch.bytes));
        int result;

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size < 0 ? -errno : 0;
        result = take_bytes(pack, (uint64_t)size);
        if (result == 0)
            result = write_all(target_fd, data, (size_t)size);
        if (result < 0)
            return result;
    }
}

static int pack_file(struct pack *pack, int source_fd, const struct stat *status, int folder_fd,
                     const char *name)
{
    _cleanup_close_ int target_fd = openat(
        folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int result = target_fd < 0 ? -errno : copy_bytes(pack, source_fd, target_fd);

    return result < 0 ? result : copy_status(target_fd, status);
}

static int pack_link(struct pack *pack, int source_fd, const char *name, int folder_fd)
{
    char *target = pack->scratch.link;
    ssize_t size = readlinkat(source_fd, name, target, sizeof(pack->scratch.link) - 1);

    if (size < 0)
        return errno == ENOENT || errno == EINVAL ? 0 : -errno; /* gone, or no link any more */
    target[size] = 0;
    return symlinkat(target, folder_fd, name) < 0 ? -errno : 0;
}

static int pack_subfolder(struct pack *pack, int source_fd, const struct stat *status,
                          int folder_fd, const char *name)
{
    _cleanup_close_ int target_fd = -1;
    int result;

    if (pack->depth == SOURCE_PACK_DEPTH_MAX)
        return -ELOOP;
    if (mkdirat(folder_fd, name, 0700) < 0)
        return -errno;
    target_fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (target_fd < 0)
        return -errno;
    pack->depth++;
    result = pack_folder(pack, source_fd, target_fd);
    pack->depth--;
    return result < 0 ? result : copy_status(target_fd, status);
}

/* Whether it is a device or the like, which may do something when it is only opened. */
static bool is_special(int source_fd, const char *name)
{
    struct stat status;

    return fstatat(source_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode);
}

/* Not blocking, so that a FIFO that has come meanwhile does not hold us up. What the descriptor
 * is, counts. */
static int pack_entry(struct pack *pack, int source_fd, const char *name, int folder_fd)
{
    _cleanup_close_ int fd = -1;
    struct stat status;
    int result = take_bytes(pack, SOURCE_PACK_ENTRY_BYTES + strlen(name));

    if (result < 0 || is_special(source_fd, name))
        return result;
    fd = openat(source_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ELOOP)
        return pack_link(pack, source_fd, name, folder_fd);
    if (fd < 0) /* gone meanwhile; a socket or device that cannot be opened */
        return errno == ENOENT || errno == ENXIO || errno == ENODEV ? 0 : -errno;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISREG(status.st_mode))
        return pack_file(pack, fd, &status, folder_fd, name);
    if (S_ISDIR(status.st_mode))
        return pack_subfolder(pack, fd, &status, folder_fd, name);
    return 0;
}

/* The path of the entry NAME stays behind on failure: it is where it failed. */
static int pack_named(struct pack *pack, int source_fd, const char *name, int folder_fd)
{
    size_t size = strlen(pack->path);
    int result;

    (void)snprintf(pack->path + size, SOURCE_PACK_PATH_BYTES - size, "%s%s", size ? "/" : "",
                   name); /* a cut is fine in a message */
    result = pack_entry(pack, source_fd, name, folder_fd);
    if (result == 0)
        pack->path[size] = 0;
    return result;
}

static int pack_folder(struct pack *pack, int source_fd, int target_fd)
{
    int fd = openat(source_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int result = 0;

    if (!folder) {
        result = -errno;
        closep(&fd);
        return result;
    }
    while (result == 0 && (errno = 0, entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = pack_named(pack, fd, entry->d_name, target_fd);
    }
    if (result == 0 && errno != 0)
        result = -errno;
    (void)closedir(folder); /* only read */
    return result;
}

int source_pack(int source_fd, int target_fd, uint64_t max_bytes,
                char ret_path[SOURCE_PACK_PATH_BYTES])
{
    struct pack pack = { .left_bytes = max_bytes, .path = ret_path };

    ret_path[0] = 0;
    return pack_folder(&pack, source_fd, target_fd);
}
