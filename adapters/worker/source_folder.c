/* source_folder.c - see source_folder.h. */
#include "source_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "buf.h"

/* Beneath FD, whatever happens to the path meanwhile. The descriptor or -errno. */
static int open_beneath(int fd, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };
    long result;

    do
        result = syscall(SYS_openat2, fd, path, &how, sizeof(how));
    while (result < 0 && errno == EAGAIN); /* something was renamed in that moment */
    return result < 0 ? -errno : (int)result;
}

/* What of PATH lies below ROOT, both resolved; NULL: it does not. */
static const char *path_below(const char *path, const char *root)
{
    size_t size = strlen(root);

    if (strcmp(root, "/") == 0)
        return path[1] ? path + 1 : ".";
    if (strncmp(path, root, size) != 0 || (path[size] && path[size] != '/'))
        return NULL;
    return path[size] ? path + size + 1 : ".";
}

/* The folder PATH, resolved, as a descriptor beneath ROOT. -EXDEV: it is not in there. */
static int open_in_root(const char *path, const char *root)
{
    char resolved[PATH_MAX];
    _cleanup_close_ int root_fd = -1;
    const char *below;

    if (!realpath(root, resolved))
        return -EXDEV;
    below = path_below(path, resolved);
    if (!below)
        return -EXDEV;
    root_fd = open(resolved, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (root_fd < 0)
        return -errno;
    return open_beneath(root_fd, below, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
}

static int open_folder(const char *host_path, const struct text_list *allowed_roots,
                       struct source_folder *source, struct sandbox_error *err)
{
    int result = -EXDEV;

    source->path = realpath(host_path, NULL);
    if (!source->path)
        return sandbox_error_set(err, S501, "source.host_path %s: %s", host_path,
                                 strerror(errno));
    for (size_t i = 0; result == -EXDEV && i < allowed_roots->count; i++)
        result = open_in_root(source->path, allowed_roots->items[i]);
    if (result == -EXDEV)
        return sandbox_error_set(err, S501,
                                 "source.host_path %s lies in none of allowed_roots (%zu "
                                 "folders)",
                                 host_path, allowed_roots->count);
    if (result < 0)
        return sandbox_error_set(err, S501, "source.host_path %s: %s", host_path,
                                 strerror(-result));
    source->fd = result;
    return 0;
}

/* At most MANIFEST_MAX_BYTES of a regular file. 0, -EFBIG or another -errno. */
static int read_regular(int fd, struct buf *to)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
    for (;;) {
        uint8_t *room = buf_reserve(to, 65536);
        ssize_t size;

        if (!room)
            return -ENOMEM;
        size = read(fd, room, 65536);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size < 0 ? -errno : 0;
        to->size += (size_t)size;
        if (to->size > MANIFEST_MAX_BYTES)
            return -EFBIG;
    }
}

static int read_manifest(struct source_folder *source, struct sandbox_error *err)
{
    char path[PATH_MAX + sizeof(MANIFEST_FILE) + 1];
    /* Not blocking: a FIFO must not hold us up before it is recognised. */
    _cleanup_close_ int fd = open_beneath(source->fd, MANIFEST_FILE, O_RDONLY | O_NONBLOCK, 0);
    int result = fd < 0 ? fd : read_regular(fd, &source->text);

    (void)snprintf(path, sizeof(path), "%s/" MANIFEST_FILE, source->path);
    if (result == -EFBIG)
        return sandbox_error_set(err, S501, "%s: expected at most %u bytes", path,
                                 MANIFEST_MAX_BYTES);
    if (result < 0)
        return sandbox_error_set(err, S501, "%s: %s", path, strerror(-result));
    return manifest_parse(path, (const char *)source->text.data, source->text.size,
                          &source->manifest, err);
}

int source_folder_open(const char *host_path, const struct text_list *allowed_roots,
                       struct source_folder *ret_source, struct sandbox_error *err)
{
    struct source_folder source = { .fd = -1 };

    if (open_folder(host_path, allowed_roots, &source, err) < 0 ||
        read_manifest(&source, err) < 0) {
        source_folder_done(&source);
        return -1;
    }
    *ret_source = source;
    return 0;
}

void source_folder_done(struct source_folder *source)
{
    closep(&source->fd);
    free(source->path);
    buf_done(&source->text);
    manifest_done(&source->manifest);
    *source = (struct source_folder){ .fd = -1 };
}
