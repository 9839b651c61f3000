/* fs_mv.c - mv (contract 8.7). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs.h"
#include "fs_error.h"
#include "path.h"
#include "temporary.h"

#define COPY_BYTES (64u * 1024)

/* Both ends, as *at() calls want them. */
struct move {
    struct path src;
    struct path dst;
    int src_fd; /* parent of src */
    int dst_fd;
    struct stat status; /* of src itself */
    bool overwrite;
};

static void move_done(struct move *move)
{
    closep(&move->src_fd);
    closep(&move->dst_fd);
}

static int move_init(struct move *move, const struct fs_mv_request *request,
                     struct sandbox_error *err)
{
    move->overwrite = request->overwrite;
    if (path_init(&move->src, "src", request->src, err) < 0 ||
        path_init(&move->dst, "dst", request->dst, err) < 0)
        return -1;
    move->src_fd = path_open_parent(&move->src);
    if (move->src_fd < 0)
        return fs_error(err, -move->src_fd, move->src.text);
    if (fstatat(move->src_fd, path_name_at(&move->src), &move->status, AT_SYMLINK_NOFOLLOW) < 0)
        return fs_error(err, errno, move->src.text);
    move->dst_fd = path_open_parent(&move->dst);
    if (move->dst_fd < 0)
        return fs_error(err, -move->dst_fd, move->dst.text);
    return 0;
}

static int move_rename(const struct move *move)
{
    struct stat status;

    if (renameat2(move->src_fd, path_name_at(&move->src), move->dst_fd,
                  path_name_at(&move->dst), move->overwrite ? 0 : RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == ENOENT &&
        fstatat(move->src_fd, path_name_at(&move->src), &status, AT_SYMLINK_NOFOLLOW) == 0)
        return -fs_creation_errno(ENOENT, move->dst_fd);
    return -errno;
}

static bool same_object(const struct stat *one, const struct stat *two)
{
    return one->st_dev == two->st_dev && one->st_ino == two->st_ino;
}

/* Two names of one file: renaming the one to the other does nothing, so the old name is still
 * to be removed; unless both are the same name. 0 or -errno. */
static int move_finish(const struct move *move)
{
    struct stat src_parent, dst_parent, src;

    if (fstatat(move->src_fd, path_name_at(&move->src), &src, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* it has moved: the normal case */
    if (!same_object(&src, &move->status) || fstat(move->src_fd, &src_parent) < 0 ||
        fstat(move->dst_fd, &dst_parent) < 0)
        return 0;
    if (same_object(&src_parent, &dst_parent) && strcmp(move->src.name, move->dst.name) == 0)
        return 0;
    if (S_ISDIR(src.st_mode) || unlinkat(move->src_fd, move->src.name, 0) == 0)
        return 0;
    return -errno;
}

/* To another file system. */

static int copy_bytes(int from_fd, struct temporary *file)
{
    uint8_t data[COPY_BYTES];
    ssize_t size;

    while ((size = read(from_fd, data, sizeof(data))) != 0) {
        int result = size < 0 ? -errno : temporary_write(file, data, (size_t)size);

        if (result < 0 && result != -EINTR)
            return result;
    }
    return 0;
}

static int copy_file(const struct move *move, struct temporary *file)
{
    const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, move->status.st_mtim };
    _cleanup_close_ int fd = openat(move->src_fd, move->src.name,
                                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    int result;

    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EXDEV;
    result = temporary_open(file, move->dst_fd);
    if (result == 0)
        result = copy_bytes(fd, file);
    if (result == 0)
        result = temporary_set_owner(file, status.st_uid, status.st_gid,
                                     status.st_mode & 07777);
    if (result == 0 && (fsync(file->fd) < 0 || futimens(file->fd, times) < 0))
        result = -errno;
    return result;
}

static int copy_link(const struct move *move, struct temporary *file)
{
    const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, move->status.st_mtim };
    char target[PATH_BYTES_MAX + 1];
    ssize_t size = readlinkat(move->src_fd, move->src.name, target, sizeof(target) - 1);
    int result;

    if (size < 0)
        return -errno;
    target[size] = 0;
    result = temporary_link(file, move->dst_fd, target);
    if (result < 0)
        return result;
    if (fchownat(file->folder_fd, file->name, move->status.st_uid, move->status.st_gid,
                 AT_SYMLINK_NOFOLLOW) < 0 ||
        utimensat(file->folder_fd, file->name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

/* A copy beside the destination takes its place, then the original goes. */
static int move_copy(const struct move *move)
{
    _cleanup_(temporary_done)
    struct temporary file = TEMPORARY_NONE;
    struct stat status;
    int result;

    if (!S_ISREG(move->status.st_mode) && !S_ISLNK(move->status.st_mode))
        return -EXDEV;
    if (!move->overwrite &&
        fstatat(move->dst_fd, path_name_at(&move->dst), &status, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST; /* said before a long copy; the rename says it again */
    result = S_ISLNK(move->status.st_mode) ? copy_link(move, &file) : copy_file(move, &file);
    if (result == 0)
        result = temporary_commit(&file, path_name_at(&move->dst), move->overwrite);
    if (result < 0)
        return result;
    return unlinkat(move->src_fd, move->src.name, 0) < 0 ? -errno : 0;
}

static int move_error(const struct move *move, int error, struct sandbox_error *err)
{
    switch (error) {
    case EINVAL: /* of rename(2): below itself */
        if (!S_ISDIR(move->status.st_mode))
            break;
        return sandbox_error_set(err, S210, "`dst` %s lies inside `src` %s", move->dst.text,
                                 move->src.text);
    case EISDIR:
        return sandbox_error_set(err, S212, "%s is a directory, %s is none", move->dst.text,
                                 move->src.text);
    case ENOTDIR:
        return sandbox_error_set(err, S212, "%s is no directory, %s is one", move->dst.text,
                                 move->src.text);
    case EXDEV:
        return sandbox_error_set(err, S216,
                                 "%s cannot be moved to another file system: only a regular "
                                 "file or a link can",
                                 move->src.text);
    case EEXIST:
        if (move->overwrite)
            return fs_error(err, ENOTEMPTY, move->dst.text);
        break;
    default:
        break;
    }
    return fs_error(err, error, move->dst.text);
}

int fs_mv(struct job *job, const struct fs_mv_request *request, struct fs_mv_reply *reply,
          struct sandbox_error *err)
{
    _cleanup_(move_done)
    struct move move = { .src_fd = -1, .dst_fd = -1 };
    int result;

    if (move_init(&move, request, err) < 0)
        return -1;
    result = move_rename(&move);
    if (result == -EXDEV)
        result = move_copy(&move);
    else if (result == 0 && move.overwrite)
        result = move_finish(&move);
    if (result < 0)
        return move_error(&move, -result, err);
    reply->has_moved = reply->moved = true;
    return 0;
}
