/* image_lock.c - see image_lock.h. */
#include "image_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"

#define TRIES_MAX 16 /* each means that a holder took the file away just now */

static bool has_name(int fd, const char *path)
{
    struct stat locked, found;

    return fstat(fd, &locked) == 0 && lstat(path, &found) == 0 &&
           locked.st_ino == found.st_ino && locked.st_dev == found.st_dev;
}

int image_lock_take(const char *path)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
            return -errno;
        if (has_name(fd, path))
            return take_fd(&fd);
    }
    return -EWOULDBLOCK;
}

void image_lock_give(const char *path, const char *image_directory, int own_fd)
{
    _cleanup_close_ int fd = own_fd;

    if (fd >= 0 && access(image_directory, F_OK) < 0 && errno == ENOENT)
        (void)unlink(path); /* it stays, no more */
}
