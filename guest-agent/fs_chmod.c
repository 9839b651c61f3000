/* fs_chmod.c - chmod (contract 8.6). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "fs.h"
#include "fs_error.h"
#include "path.h"
#include "walk.h"

#define FCHMODAT2_NUMBER 452 /* the same everywhere; newer than our headers */

/* What is to be applied. */
struct change {
    uid_t uid; /* -1: kept */
    gid_t gid; /* -1: kept */
    mode_t mode;
};

/* By the descriptor alone (O_PATH), so that neither FIFO nor device is opened. */
static int set_mode(int fd, mode_t mode)
{
    char path[32];

    if (syscall(FCHMODAT2_NUMBER, fd, "", mode, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOSYS && errno != EPERM) /* EPERM: also what filters say of the unknown */
        return -errno;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return chmod(path, mode) < 0 ? -errno : 0;
}

/* Owner first: a change of owner clears bits of the mode. */
static int change_apply(const struct change *change, int fd)
{
    if ((change->uid != (uid_t)-1 || change->gid != (gid_t)-1) &&
        fchownat(fd, "", change->uid, change->gid, AT_EMPTY_PATH) < 0)
        return -errno;
    return set_mode(fd, change->mode);
}

/* Links, mounts and the way back count for nothing. */
static int change_entry(const struct change *change, const struct walk_entry *entry,
                        uint64_t *updated)
{
    _cleanup_close_ int fd = -1;
    int result;

    if (entry->kind == WALK_LEAVE || entry->kind == WALK_MOUNT || S_ISLNK(entry->mode))
        return 0;
    fd = openat(entry->folder_fd, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    result = change_apply(change, fd);
    if (result == 0)
        ++*updated;
    return result;
}

static int change_below(const struct change *change, int root_fd, const struct path *path,
                        uint64_t *updated, struct sandbox_error *err)
{
    _cleanup_(walk_freep)
    struct walk *walk = NULL;
    struct walk_entry entry;
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -errno : walk_open(fd, path->text, &walk);

    if (result < 0)
        return fs_error(err, -result, path->text);
    while ((result = walk_next(walk, &entry)) > 0) {
        result = change_entry(change, &entry, updated);
        if (result < 0)
            break;
    }
    return result < 0 ? fs_error(err, -result, walk_path(walk)) : 0;
}

/* The kernel takes this id for "keep it"; nobody can own anything under it. */
static int check_owner(const char *field, bool is_given, uint32_t id, struct sandbox_error *err)
{
    if (!is_given || id != UINT32_MAX)
        return 0;
    return sandbox_error_set(err, S210, "`%s` wants 0 to %" PRIu32 ", got %" PRIu32, field,
                             UINT32_MAX - 1, id);
}

int fs_chmod(struct job *job, const struct fs_chmod_request *request,
             struct fs_chmod_reply *reply, struct sandbox_error *err)
{
    struct change change = {
        .uid = request->has_uid ? request->uid : (uid_t)-1,
        .gid = request->has_gid ? request->gid : (gid_t)-1,
    };
    _cleanup_close_ int fd = -1;
    struct stat status;
    struct path path;
    int result;

    if (path_init(&path, "path", request->path, err) < 0 ||
        mode_parse(request->mode, &change.mode, err) < 0 ||
        check_owner("uid", request->has_uid, request->uid, err) < 0 ||
        check_owner("gid", request->has_gid, request->gid, err) < 0)
        return -1;
    fd = open(path.text, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        return fs_error(err, errno, path.text);
    result = change_apply(&change, fd);
    if (result < 0)
        return fs_error(err, -result, path.text);
    reply->has_updated = true;
    reply->updated = 1;
    if (!request->recursive || !S_ISDIR(status.st_mode))
        return 0;
    return change_below(&change, fd, &path, &reply->updated, err);
}
