/* file.c - see file.h. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>

#define FILE_READ_BYTES 16384u

int file_read(const char *path, size_t max_bytes, struct buf *buf)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t total = 0;
    ssize_t size;

    if (fd < 0)
        return -errno;
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
