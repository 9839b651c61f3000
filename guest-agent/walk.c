/* walk.c - see walk.h. */
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "buf.h"
#include "names.h"

/* How many of the deepest levels keep their descriptor; the others are opened again on the way
 * back. */
#define LEVELS_OPEN_MAX 32u
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

struct level {
    struct names names;
    size_t next;      /* of names; 0 and names not read: just entered */
    bool listed;      /* names are read */
    int fd;           /* -1: closed meanwhile */
    size_t path_size; /* of walk->path up to here */
    dev_t device;
    ino_t inode;
};

struct walk {
    struct level *levels;
    size_t depth; /* levels in use */
    size_t capacity;
    struct buf path;
    size_t relative_at; /* in path */
};

static void level_done(struct level *level)
{
    names_done(&level->names);
    closep(&level->fd);
}

static struct level *walk_top(struct walk *walk)
{
    return &walk->levels[walk->depth - 1];
}

/* Goes one level down, into OWN_FD. 0 or -errno. */
static int walk_push(struct walk *walk, int own_fd)
{
    _cleanup_close_ int fd = own_fd;
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (walk->depth == walk->capacity) {
        const size_t capacity = walk->capacity ? walk->capacity * 2 : 16;
        struct level *levels = reallocarray(walk->levels, capacity, sizeof(*levels));

        if (!levels)
            return -ENOMEM;
        walk->levels = levels;
        walk->capacity = capacity;
    }
    walk->levels[walk->depth++] = (struct level){
        .fd = take_fd(&fd),
        .path_size = walk->path.size,
        .device = status.st_dev,
        .inode = status.st_ino,
    };
    if (walk->depth > LEVELS_OPEN_MAX + 1) /* the root always stays open */
        closep(&walk->levels[walk->depth - 1 - LEVELS_OPEN_MAX].fd);
    return 0;
}

int walk_open(int own_root_fd, const char *root_path, struct walk **ret_walk)
{
    _cleanup_close_ int fd = own_root_fd;
    _cleanup_(walk_freep)
    struct walk *walk = calloc(1, sizeof(*walk));
    int result;

    if (!walk)
        return -ENOMEM;
    if (strcmp(root_path, "/") != 0 && buf_append_text(&walk->path, root_path) < 0)
        return -ENOMEM;
    walk->relative_at = walk->path.size + 1;
    result = walk_push(walk, take_fd(&fd));
    if (result < 0)
        return result;
    *ret_walk = take_ptr(walk);
    return 0;
}

/* Opens the directory NAME. -EXDEV: something is mounted there. */
static int folder_open(const struct level *level, const char *name, const struct stat *status)
{
    const struct open_how how = {
        .flags = FOLDER_FLAGS,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
    };
    int fd = (int)syscall(SYS_openat2, level->fd, name, &how, sizeof(how));

    if (fd >= 0 || errno != ENOSYS)
        return fd < 0 ? -errno : fd;
    if (status->st_dev != level->device)
        return -EXDEV;
    fd = openat(level->fd, name, FOLDER_FLAGS);
    return fd < 0 ? -errno : fd;
}

static bool vanished(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* The names of a folder in /proc cannot be read when its process has ended. */
static bool process_ended(int folder_fd, int error)
{
    struct statfs status;

    return (error == EINVAL || error == ESRCH) && fstatfs(folder_fd, &status) == 0 &&
           status.f_type == PROC_SUPER_MAGIC;
}

/* Whether FD is the directory of LEVEL. */
static bool level_is(const struct level *level, int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_dev == level->device &&
           status.st_ino == level->inode;
}

/* By name from the root, for a tree that was moved about. The descriptor or -errno. */
static int level_find(struct walk *walk, const struct level *level)
{
    const char *base = (const char *)walk->path.data;
    _cleanup_close_ int fd = fcntl(walk->levels[0].fd, F_DUPFD_CLOEXEC, 0);
    size_t at = walk->relative_at;

    while (fd >= 0 && at <= level->path_size) {
        const char *end = memchr(base + at, '/', level->path_size - at);
        const size_t size = end ? (size_t)(end - base) - at : level->path_size - at;
        char name[256];
        int next;

        if (size >= sizeof(name))
            return -ENAMETOOLONG;
        memcpy(name, base + at, size);
        name[size] = 0;
        next = openat(fd, name, FOLDER_FLAGS);
        (void)close(fd);
        fd = next;
        at += size + 1;
    }
    if (fd < 0)
        return -errno;
    return level_is(level, fd) ? take_fd(&fd) : -ENOENT;
}

/* Opens the parent's level again if its descriptor was closed. */
static int level_reopen(struct walk *walk, struct level *level, int child_fd)
{
    _cleanup_close_ int fd = -1;

    if (level->fd >= 0)
        return 0;
    fd = openat(child_fd, "..", FOLDER_FLAGS);
    if (fd >= 0 && level_is(level, fd)) {
        level->fd = take_fd(&fd);
        return 0;
    }
    level->fd = level_find(walk, level);
    return level->fd < 0 ? level->fd : 0;
}

static void path_set(struct walk *walk, size_t size)
{
    walk->path.size = size;
}

static int path_add(struct walk *walk, const char *name)
{
    if (buf_append_byte(&walk->path, '/') < 0 || buf_append_text(&walk->path, name) < 0 ||
        !buf_text(&walk->path))
        return -ENOMEM;
    return 0;
}

static void entry_fill_paths(struct walk *walk, struct walk_entry *entry)
{
    const char *path = buf_text(&walk->path); /* room for the NUL is there */

    entry->path = path;
    entry->relative = path + walk->relative_at;
    entry->name = strrchr(path, '/') + 1;
}

/* The top level is through: back to its parent. 1: the entry of that; 0: it was the root; or
 * -errno. A parent that cannot be found any more is through as well. */
static int walk_leave(struct walk *walk, struct walk_entry *entry)
{
    while (walk->depth > 1) {
        struct level *child = walk_top(walk);
        struct level *parent = child - 1;
        int result = level_reopen(walk, parent, child->fd);

        path_set(walk, child->path_size);
        level_done(child);
        walk->depth--;
        if (result == 0) {
            *entry = (struct walk_entry){ .kind = WALK_LEAVE, .folder_fd = parent->fd };
            entry_fill_paths(walk, entry);
            return 1;
        }
        if (!vanished(-result))
            return result;
    }
    return 0;
}

/* Shows one name of the top level. 1: an entry; 0: it vanished; or -errno. */
static int walk_show(struct walk *walk, const char *name, struct walk_entry *entry)
{
    struct level *level = walk_top(walk);
    const int folder_fd = level->fd;
    struct stat status;
    int fd, result;

    path_set(walk, level->path_size);
    result = path_add(walk, name);
    if (result < 0)
        return result;
    if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return vanished(errno) ? 0 : -errno;
    *entry = (struct walk_entry){ .folder_fd = folder_fd, .mode = status.st_mode };
    if (S_ISDIR(status.st_mode)) {
        fd = folder_open(level, name, &status);
        if (fd < 0 && fd != -EXDEV)
            return vanished(-fd) ? 0 : fd;
        entry->kind = fd < 0 ? WALK_MOUNT : WALK_ENTER;
        result = fd < 0 ? 0 : walk_push(walk, fd);
        if (result < 0)
            return result;
    }
    entry_fill_paths(walk, entry);
    return 1;
}

int walk_next(struct walk *walk, struct walk_entry *ret_entry)
{
    for (;;) {
        struct level *level = walk_top(walk);
        int result;

        if (!level->listed) {
            path_set(walk, level->path_size);
            level->listed = true;
            result = names_read(&level->names, level->fd, NAMES_BYTES_MAX);
            if (result < 0 && !vanished(-result) && !process_ended(level->fd, -result))
                return result;
            if (level->names.entries > level->names.count)
                return -E2BIG;
        }
        if (level->next == level->names.count)
            return walk_leave(walk, ret_entry);
        result = walk_show(walk, names_get(&level->names, level->next++), ret_entry);
        if (result != 0)
            return result;
    }
}

const char *walk_path(struct walk *walk)
{
    const char *path = buf_text(&walk->path);

    return path && *path ? path : "/";
}

void walk_free(struct walk *walk)
{
    if (!walk)
        return;
    for (size_t i = 0; i < walk->depth; i++)
        level_done(&walk->levels[i]);
    free(walk->levels);
    buf_done(&walk->path);
    free(walk);
}
