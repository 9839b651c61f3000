/* fs_rm.c - rm (contract 8.5). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "fs.h"
#include "fs_error.h"
#include "path.h"
#include "walk.h"

static int remove_entry(const struct walk_entry *entry)
{
    const int flags = entry->kind == WALK_LEAVE ? AT_REMOVEDIR : 0;

    if (entry->kind == WALK_MOUNT)
        return -EBUSY;
    if (entry->kind == WALK_ENTER)
        return 0;
    if (unlinkat(entry->folder_fd, entry->name, flags) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}

/* All that is below the directory; not itself. */
static int remove_below(int parent_fd, const struct path *path, struct sandbox_error *err)
{
    _cleanup_(walk_freep)
    struct walk *walk = NULL;
    struct walk_entry entry;
    int fd = openat(parent_fd, path->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = fd < 0 ? -errno : walk_open(fd, path->text, &walk);

    if (result < 0)
        return fs_error(err, -result, path->text);
    while ((result = walk_next(walk, &entry)) > 0) {
        result = remove_entry(&entry);
        if (result < 0)
            break;
    }
    return result < 0 ? fs_error(err, -result, walk_path(walk)) : 0;
}

static bool is_root(const struct stat *status)
{
    struct stat root;

    return stat("/", &root) == 0 && root.st_dev == status->st_dev &&
           root.st_ino == status->st_ino;
}

/* Emptying what is mounted, only to find that it cannot be removed, would be a trap. */
static bool is_mount_point(int parent_fd, const char *name)
{
    struct statx status;

    return statx(parent_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &status) == 0 &&
           (status.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int remove_folder(int parent_fd, const struct path *path, bool recursive,
                         struct sandbox_error *err)
{
    const bool real_name = strcmp(path->name, ".") != 0 && strcmp(path->name, "..") != 0;

    if (recursive && is_mount_point(parent_fd, path->name))
        return fs_error(err, EBUSY, path->text);
    if (recursive && real_name && remove_below(parent_fd, path, err) < 0)
        return -1;
    if (unlinkat(parent_fd, path->name, AT_REMOVEDIR) < 0)
        return fs_error(err, errno == EEXIST ? ENOTEMPTY : errno, path->text);
    return 0;
}

int fs_rm(struct job *job, const struct fs_rm_request *request, struct fs_rm_reply *reply,
          struct sandbox_error *err)
{
    _cleanup_close_ int parent_fd = -1;
    struct stat status;
    struct path path;

    if (path_init(&path, "path", request->path, err) < 0)
        return -1;
    parent_fd = path_open_parent(&path);
    if (parent_fd < 0)
        return fs_error(err, -parent_fd, path.text);
    if (fstatat(parent_fd, path_name_at(&path), &status, AT_SYMLINK_NOFOLLOW) < 0)
        return fs_error(err, errno, path.text);
    if (is_root(&status))
        return sandbox_error_set(err, S210, "`path` %s is the root, which cannot be removed",
                                 path.text);
    reply->has_removed = reply->removed = true;
    if (S_ISDIR(status.st_mode))
        return remove_folder(parent_fd, &path, request->recursive, err);
    if (unlinkat(parent_fd, path.name, 0) < 0)
        return fs_error(err, errno, path.text);
    return 0;
}
