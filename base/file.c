/* file.c - see file.h. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_READ_BYTES 16384u

/* Without O_NONBLOCK the opening of a FIFO would wait for a writer. */
static int open_regular(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    if (fd < 0)
        return errno == ENXIO ? -ENOTSUP : -errno; /* a socket */
    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    return S_ISREG(status.st_mode) ? take_fd(&fd) : -ENOTSUP;
}

const char *file_read_problem(int result)
{
    return result == -ENOTSUP ? "is no regular file" : strerror(-result);
}

int file_read(const char *path, size_t max_bytes, struct buf *buf)
{
    _cleanup_close_ int fd = open_regular(path);
    size_t total = 0;
    ssize_t size;

    if (fd < 0)
        return fd;
    do {
        int result = buf_ensure(buf, FILE_READ_BYTES);

        if (result < 0)
            return result;
        do {
            size = read(fd, buf->data + buf->size, FILE_READ_BYTES);
        } while (size < 0 && errno == EINTR);
        if (size < 0)
            return -errno;
        buf->size += (size_t)size;
        total += (size_t)size;
        if (total > max_bytes)
            return -EFBIG;
    } while (size > 0);
    return 0;
}
