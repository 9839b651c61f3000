/* fs_write.c - write (contract 8.10): the body comes as stream 0, also a short one. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "agent_frame.h"
#include "fs.h"
#include "fs_error.h"
#include "parents.h"
#include "temporary.h"

/* A link is replaced itself; anything else but a file is in the way. */
static int destination_check(int parent_fd, const struct path *path, struct sandbox_error *err)
{
    struct stat status;

    if (fstatat(parent_fd, path_name_at(path), &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fs_error(err, errno, path->text);
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
        return fs_wrong_type(err, path->text, status.st_mode, "a regular file");
    return 0;
}

/* Takes the stream to its clean end. */
static int body_take(struct job *job, struct temporary *file, const struct path *path,
                     uint64_t *ret_bytes, struct sandbox_error *err)
{
    uint64_t bytes = 0;

    for (;;) {
        struct sandbox_error cause = { 0 };
        const uint8_t *data;
        ssize_t size = job_receive(job, &data, &cause);
        int result;

        if (size < 0) {
            (void)sandbox_error_set(err, cause.code, "%s: %s after %" PRIu64 " bytes",
                                    path->text, cause.message, bytes);
            sandbox_error_done(&cause);
            return -1;
        }
        if (size == 0)
            break;
        result = temporary_write_much(file, data, (size_t)size);
        if (result < 0)
            return fs_error(err, -result, path->text);
        bytes += (uint64_t)size;
    }
    *ret_bytes = bytes;
    return 0;
}

/* With its owner and mode, under its name. It need not reach a disk: where one outlives the
 * machine, its owner syncs. 0 or -errno. */
static int body_publish(struct temporary *file, const struct path *path, mode_t mode)
{
    int result = temporary_set_owner(file, 0, 0, mode);

    return result < 0 ? result : temporary_commit(file, path_name_at(path), true);
}

int fs_write(struct job *job, const struct fs_write_request *request,
             struct guest_fs_write_reply *reply, struct sandbox_error *err)
{
    _cleanup_close_ int parent_fd = -1; /* outlives the temporary in it */
    _cleanup_(temporary_done)
    struct temporary file = TEMPORARY_NONE;
    struct path path;
    mode_t mode;
    int result;

    if (path_init(&path, "path", request->path, err) < 0 ||
        mode_parse(request->mode, &mode, err) < 0)
        return -1;
    parent_fd = parents_open(&path, request->parents, err);
    if (parent_fd < 0 || destination_check(parent_fd, &path, err) < 0)
        return -1;
    result = temporary_open(&file, parent_fd);
    if (result < 0)
        return fs_error(err, -result, path.text);
    if (body_take(job, &file, &path, &reply->bytes_written, err) < 0)
        return -1;
    result = body_publish(&file, &path, mode);
    if (result < 0)
        return fs_error(err, -result, path.text);
    reply->has_bytes_written = true;
    return 0;
}
