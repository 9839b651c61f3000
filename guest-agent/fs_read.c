/* fs_read.c - read (contract 8.11): a head, then the bytes as the host takes them. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent_frame.h"
#include "fs.h"
#include "fs_error.h"
#include "path.h"

/* Looks before it opens, because opening a device can do something; looks again at what was
 * opened, because it may have changed in between. The descriptor or -1. */
static int file_open(const struct path *path, struct stat *ret_status,
                     struct sandbox_error *err)
{
    _cleanup_close_ int fd = -1;

    if (stat(path->text, ret_status) < 0)
        return fs_error(err, errno, path->text);
    if (!S_ISREG(ret_status->st_mode))
        return fs_wrong_type(err, path->text, ret_status->st_mode, "a regular file");
    fd = open(path->text, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, ret_status) < 0)
        return fs_error(err, errno, path->text);
    if (!S_ISREG(ret_status->st_mode))
        return fs_wrong_type(err, path->text, ret_status->st_mode, "a regular file");
    return take_fd(&fd);
}

static int send_head(struct job *job, const struct stat *status, struct sandbox_error *err)
{
    char mode[MODE_TEXT_BYTES];
    const struct guest_fs_read_head head = {
        .has_size = true,
        .size = (uint64_t)status->st_size,
        .has_mode = true,
        .mode = mode,
        .has_mtime = true,
        .mtime = status->st_mtime,
    };

    mode_format(status->st_mode, mode);
    return job_send_head(job, &type_guest_fs_read_head, &head, err);
}

int fs_read(struct job *job, const struct fs_read_request *request, struct guest_empty *reply,
            struct sandbox_error *err)
{
    _cleanup_close_ int fd = -1;
    struct stat status;
    struct path path;
    int error = 0;

    if (path_init(&path, "path", request->path, err) < 0)
        return -1;
    fd = file_open(&path, &status, err);
    if (fd < 0 || send_head(job, &status, err) < 0)
        return -1;
    if (job_send_file(job, fd, &error, err) < 0)
        return error != 0 ? fs_error(err, error, path.text) : -1;
    return 0;
}
