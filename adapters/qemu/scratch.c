/* scratch.c - see scratch.h. */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"

int scratch_new(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd < 0 ? -errno : fd;
    if (snprintf(path, sizeof(path), "%s/scratch-XXXXXX", folder) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    (void)unlink(path); /* it is ours alone; a name left behind would only take room */
    return fd;
}

/* Copies SIZE bytes at OFFSET to the same place. */
static int copy_range(int from, int to, off_t offset, off_t size)
{
    char data[65536];
    off_t end = offset + size;

    while (offset < end) {
        off_t in = offset, out = offset;
        ssize_t done = copy_file_range(from, &in, to, &out, (size_t)(end - offset), 0);

        if (done < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP)) {
            size_t part = end - offset < (off_t)sizeof(data) ? (size_t)(end - offset)
                                                             : sizeof(data);

            done = pread(from, data, part, offset);
            if (done > 0)
                done = pwrite(to, data, (size_t)done, offset);
        }
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        offset += done;
    }
    return 0;
}

/* DATA and HOLE move only forward, so this ends. */
static int copy_data(int from, int to, off_t size)
{
    off_t at = 0;
    int result = 0;

    while (result == 0 && at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);

        if (data < 0 && errno == ENXIO) /* nothing but a hole is left */
            return 0;
        if (data < 0 || hole < 0)
            return -errno;
        result = copy_range(from, to, data, (hole < size ? hole : size) - data);
        at = hole;
    }
    return result;
}

int scratch_copy(int source_fd, const char *folder, int *ret_fd)
{
    _cleanup_close_ int fd = scratch_new(folder);
    struct stat status;
    int result;

    if (fd < 0)
        return fd;
    if (fstat(source_fd, &status) < 0)
        return -errno;
    if (ioctl(fd, FICLONE, source_fd) < 0) { /* few file systems can */
        if (ftruncate(fd, status.st_size) < 0)
            return -errno;
        result = copy_data(source_fd, fd, status.st_size);
        if (result < 0)
            return result;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}
