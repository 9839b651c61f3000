/* parents.c - see parents.h. */
#include "parents.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "fs_error.h"

#define FOLDER_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* Opens NAME in FOLDER_FD and makes it if it is not there. The descriptor or -errno. */
static int parent_step(int folder_fd, const char *name)
{
    int fd = openat(folder_fd, name, FOLDER_FLAGS);

    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? -errno : fd;
    if (mkdirat(folder_fd, name, 0755) < 0 && errno != EEXIST)
        return -fs_creation_errno(errno, folder_fd);
    fd = openat(folder_fd, name, FOLDER_FLAGS);
    if (fd < 0)
        return errno == ENOENT ? -ENOTDIR : -errno; /* what exists is a link to nothing */
    return fd;
}

/* Part by part; PARENT is cut up. */
static int parents_make(char *parent)
{
    _cleanup_close_ int fd = open("/", FOLDER_FLAGS);
    char *rest = NULL;

    if (fd < 0)
        return -errno;
    for (char *part = strtok_r(parent, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        const int next = parent_step(fd, part);

        if (next < 0)
            return next;
        (void)close(fd);
        fd = next;
    }
    return take_fd(&fd);
}

int parents_open(const struct path *path, bool make, struct sandbox_error *err)
{
    char parent[PATH_BYTES_MAX + 1];
    int fd = path_open_parent(path);

    if (fd == -ENOENT && !make)
        return fs_parent_missing(err, path->text);
    if (fd == -ENOENT) {
        memcpy(parent, path->text, path->parent_size);
        parent[path->parent_size] = 0;
        fd = parents_make(parent);
    }
    return fd < 0 ? fs_error(err, -fd, path->text) : fd;
}
