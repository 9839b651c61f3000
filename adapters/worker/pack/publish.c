/* publish.c - see publish.h. */
#include "publish.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"

static int sync_parent(const char *path)
{
    _cleanup_free_ char *copy = strdup(path);
    _cleanup_close_ int fd = -1;

    if (!copy)
        return -ENOMEM;
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int publish(const char *next, const char *current)
{
    if (renameat2(AT_FDCWD, next, AT_FDCWD, current, RENAME_EXCHANGE) < 0 &&
        (errno != ENOENT || rename(next, current) < 0))
        return -errno;
    return sync_parent(current);
}
