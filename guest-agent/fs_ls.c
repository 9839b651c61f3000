/* fs_ls.c - ls and stat (contract 8.2, 8.3). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "agent_frame.h"
#include "entry.h"
#include "fs.h"
#include "fs_error.h"
#include "names.h"
#include "path.h"

/* What an entry takes in the answer besides its name, at least. */
#define ENTRY_BYTES_MIN 48u

/* A folder, and not through a link. The descriptor, or -1: ERR says why. */
static int folder_open(const struct path *path, struct sandbox_error *err)
{
    const int fd = open(path->text,
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int error = errno;
    struct stat status;

    if (fd >= 0)
        return fd;
    if ((error == ENOTDIR || error == ELOOP) && lstat(path->text, &status) == 0 &&
        !S_ISDIR(status.st_mode))
        return fs_wrong_type(err, path->text, status.st_mode, "a directory");
    return fs_error(err, error, path->text);
}

/* Describes what is still there of the names. 0 or -errno. */
static int entries_fill(struct fs_entry_list *entries, const struct names *names, int folder_fd)
{
    entries->items = calloc(names->count ? names->count : 1, sizeof(*entries->items));
    if (!entries->items)
        return -ENOMEM;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names_get(names, i);
        struct stat status;
        int result;

        if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue; /* vanished meanwhile */
            return -errno;
        }
        result = entry_fill(&entries->items[entries->count++], name, &status);
        if (result < 0)
            return result;
    }
    return 0;
}

int fs_ls(struct job *job, const struct fs_ls_request *request, struct fs_ls_reply *reply,
          struct sandbox_error *err)
{
    _cleanup_(names_done)
    struct names names = { 0 };
    _cleanup_close_ int fd = -1;
    struct path path;
    int result;

    if (path_init(&path, "path", request->path, err) < 0)
        return -1;
    fd = folder_open(&path, err);
    if (fd < 0)
        return -1;
    result = names_read(&names, fd, AGENT_FRAME_MAX_BYTES);
    if (result < 0)
        return fs_error(err, -result, path.text);
    if (names.text.size + names.entries * ENTRY_BYTES_MIN > AGENT_FRAME_MAX_BYTES)
        return sandbox_error_set(err, S216,
                                 "%s has %" PRIu64 " entries, more than an answer can hold",
                                 path.text, names.entries);
    reply->has_entries = true;
    result = entries_fill(&reply->entries, &names, fd);
    return result < 0 ? fs_error(err, -result, path.text) : 0;
}

int fs_stat(struct job *job, const struct fs_stat_request *request, struct fs_entry *reply,
            struct sandbox_error *err)
{
    struct stat status;
    struct path path;

    if (path_init(&path, "path", request->path, err) < 0)
        return -1;
    if (lstat(path.text, &status) < 0)
        return fs_error(err, errno, path.text);
    if (entry_fill(reply, path.name, &status) < 0)
        return fs_error(err, ENOMEM, path.text);
    return 0;
}
