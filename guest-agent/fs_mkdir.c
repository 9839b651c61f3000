/* fs_mkdir.c - mkdir (contract 8.4). */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fs.h"
#include "fs_error.h"
#include "parents.h"

/* Exactly this mode, whatever the umask and the parent's bits. 0 or -errno. */
static int folder_set_mode(int parent_fd, const char *name, mode_t mode)
{
    _cleanup_close_ int fd = openat(parent_fd, name,
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fchmod(fd, mode) < 0)
        return -errno;
    return 0;
}

/* Something is there: fine only as a directory, and only with `parents`. */
static int folder_exists(int parent_fd, const struct path *path, bool parents,
                         struct sandbox_error *err)
{
    struct stat status;

    if (!parents)
        return fs_error(err, EEXIST, path->text);
    if (fstatat(parent_fd, path_name_at(path), &status, 0) < 0) {
        if (errno == ENOENT)
            return sandbox_error_set(err, S212, "%s is a link to nothing, wanted a directory",
                                     path->text);
        return fs_error(err, errno, path->text);
    }
    if (!S_ISDIR(status.st_mode))
        return fs_wrong_type(err, path->text, status.st_mode, "a directory");
    return 0;
}

int fs_mkdir(struct job *job, const struct fs_mkdir_request *request,
             struct fs_mkdir_reply *reply, struct sandbox_error *err)
{
    _cleanup_close_ int parent_fd = -1;
    struct path path;
    mode_t mode;
    int result;

    if (path_init(&path, "path", request->path, err) < 0 ||
        mode_parse(request->mode, &mode, err) < 0)
        return -1;
    parent_fd = parents_open(&path, request->parents, err);
    if (parent_fd < 0)
        return -1;
    reply->has_created = true;
    if (mkdirat(parent_fd, path_name_at(&path), 0700) < 0) {
        if (errno != EEXIST)
            return fs_error(err, fs_creation_errno(errno, parent_fd), path.text);
        return folder_exists(parent_fd, &path, request->parents, err);
    }
    result = folder_set_mode(parent_fd, path_name_at(&path), mode);
    if (result < 0)
        return fs_error(err, -result, path.text);
    reply->created = true;
    return 0;
}
