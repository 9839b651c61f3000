/* temporary.c - see temporary.h. */
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "cleanup.h"
#include "fs_error.h"
#include "uuid.h"

#define DIRECT_ALIGN_BYTES 4096u
#define DIRECT_MIN_BYTES (128u * 1024) /* below, the page cache costs less than the disk */

static int temporary_name(struct temporary *file)
{
    char uuid[UUID_TEXT_BYTES];
    int result = uuid_random(uuid);

    if (result == 0)
        (void)snprintf(file->name, sizeof(file->name), ".iii-tmp-%s", uuid);
    return result;
}

int temporary_open(struct temporary *file, int folder_fd)
{
    int result = temporary_name(file);

    if (result < 0)
        return result;
    file->fd = openat(folder_fd, file->name,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd < 0)
        return -fs_creation_errno(errno, folder_fd);
    file->folder_fd = folder_fd;
    return 0;
}

int temporary_link(struct temporary *file, int folder_fd, const char *target)
{
    int result = temporary_name(file);

    if (result < 0)
        return result;
    if (symlinkat(target, folder_fd, file->name) < 0)
        return -fs_creation_errno(errno, folder_fd);
    file->folder_fd = folder_fd;
    return 0;
}

/* *ret_written also on failure. */
static int write_all(int fd, const char *data, size_t size, size_t *ret_written)
{
    *ret_written = 0;
    while (*ret_written < size) {
        ssize_t written = write(fd, data + *ret_written, size - *ret_written);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        *ret_written += (size_t)written;
    }
    return 0;
}

int temporary_write(struct temporary *file, const void *data, size_t size)
{
    size_t written;

    return write_all(file->fd, data, size, &written);
}

static int set_direct(int fd, bool direct)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    flags = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
    return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

/* A file system may refuse the flag, or one that has it the write (EINVAL). */
int temporary_write_much(struct temporary *file, const void *data, size_t size)
{
    size_t written = 0;
    int result = size < DIRECT_MIN_BYTES ? -EINVAL : set_direct(file->fd, true);

    if (result == 0) {
        result = write_all(file->fd, data, size - size % DIRECT_ALIGN_BYTES, &written);
        (void)set_direct(file->fd, false); /* taking it away is always allowed */
    }
    if (result < 0 && result != -EINVAL)
        return result;
    return temporary_write(file, (const char *)data + written, size - written);
}

int temporary_set_owner(struct temporary *file, uid_t uid, gid_t gid, mode_t mode)
{
    if (fchown(file->fd, uid, gid) < 0 || fchmod(file->fd, mode) < 0)
        return -errno;
    return 0;
}

int temporary_commit(struct temporary *file, const char *name, bool replace)
{
    if (renameat2(file->folder_fd, file->name, file->folder_fd, name,
                  replace ? 0 : RENAME_NOREPLACE) < 0)
        return -errno;
    file->folder_fd = -1;
    return 0;
}

void temporary_done(struct temporary *file)
{
    closep(&file->fd);
    if (file->folder_fd >= 0)
        (void)unlinkat(file->folder_fd, file->name, 0); /* the first error is told */
    file->folder_fd = -1;
}
