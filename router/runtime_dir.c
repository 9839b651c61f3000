/* runtime_dir.c - see runtime_dir.h. */
#include "runtime_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>

#define DIRECTORY_MODE 0700
#define LOCK_NAME "router.lock"
#define SOCKET_NAME "router.sock"

struct runtime_dir {
    int fd;
    int lock_fd;
    char url[sizeof("ipc://") + sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

static int fail(char *error, int number, const char *format, ...) _printf_(3, 4);

static int fail(char *error, int number, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(error, RUNTIME_DIR_ERROR_MAX, format, arguments);
    va_end(arguments);
    return number;
}

/* What we open is what we check: nobody can swap the directory in between. */
static int open_directory(const char *path, int *ret_fd, char *error)
{
    _cleanup_close_ int fd = -1;
    struct stat info;

    if (mkdir(path, DIRECTORY_MODE) < 0 && errno != EEXIST)
        return fail(error, -errno, "cannot make sandbox.runtime_dir %s: %s", path,
                    strerror(errno));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail(error, -errno, "cannot open sandbox.runtime_dir %s: %s", path,
                    strerror(errno));
    if (fstat(fd, &info) < 0)
        return fail(error, -errno, "cannot read the mode of %s: %s", path, strerror(errno));
    if (info.st_uid != geteuid())
        return fail(error, -EPERM, "sandbox.runtime_dir %s belongs to uid %u, wants %u", path,
                    (unsigned)info.st_uid, (unsigned)geteuid());
    if ((info.st_mode & 07777) != DIRECTORY_MODE)
        return fail(error, -EPERM, "sandbox.runtime_dir %s has mode %04o, wants 0700", path,
                    (unsigned)info.st_mode & 07777);
    *ret_fd = take_fd(&fd);
    return 0;
}

static int open_lock(const char *path, int directory_fd, int *ret_fd, char *error)
{
    _cleanup_close_ int fd = openat(directory_fd, LOCK_NAME,
                                    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    char pid[32] = "";
    ssize_t size;

    if (fd < 0)
        return fail(error, -errno, "cannot open %s/%s: %s", path, LOCK_NAME, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        size = pread(fd, pid, sizeof(pid) - 1, 0);
        pid[size > 0 ? strcspn(pid, "\n") : 0] = '\0';
        return fail(error, -EBUSY, "another router (pid %s) serves sandbox.runtime_dir %s",
                    pid[0] ? pid : "unknown", path);
    }
    size = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)size, 0) < 0)
        return fail(error, -errno, "cannot write %s/%s: %s", path, LOCK_NAME, strerror(errno));
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Under the lock nobody listens on it, whatever it is that lies there. */
static int remove_stale_socket(const char *path, int directory_fd, char *error)
{
    struct stat info;

    if (fstatat(directory_fd, SOCKET_NAME, &info, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT)
            return 0;
        return fail(error, -errno, "cannot look at %s/%s: %s", path, SOCKET_NAME,
                    strerror(errno));
    }
    if (!S_ISSOCK(info.st_mode))
        return fail(error, -EEXIST, "%s/%s is there and is no socket: remove it", path,
                    SOCKET_NAME);
    if (unlinkat(directory_fd, SOCKET_NAME, 0) < 0)
        return fail(error, -errno, "cannot remove the stale %s/%s: %s", path, SOCKET_NAME,
                    strerror(errno));
    return 0;
}

static int make_url(struct runtime_dir *dir, const char *path, char *error)
{
    int size = snprintf(dir->url, sizeof(dir->url), "ipc://%s/%s", path, SOCKET_NAME);

    if (size < 0 ||
        (size_t)size - strlen("ipc://") >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return fail(error, -ENAMETOOLONG,
                    "sandbox.runtime_dir %s is too long for the name of a socket", path);
    return 0;
}

int runtime_dir_open(const char *path, struct runtime_dir **ret_dir,
                     char ret_error[RUNTIME_DIR_ERROR_MAX])
{
    _cleanup_(runtime_dir_closep)
    struct runtime_dir *dir = calloc(1, sizeof(*dir));
    int result;

    if (!dir)
        return fail(ret_error, -ENOMEM, "out of memory");
    dir->fd = -1;
    dir->lock_fd = -1;
    result = make_url(dir, path, ret_error);
    if (result == 0)
        result = open_directory(path, &dir->fd, ret_error);
    if (result == 0)
        result = open_lock(path, dir->fd, &dir->lock_fd, ret_error);
    if (result == 0)
        result = remove_stale_socket(path, dir->fd, ret_error);
    if (result < 0)
        return result;
    *ret_dir = take_ptr(dir);
    return 0;
}

void runtime_dir_close(struct runtime_dir *dir)
{
    if (!dir)
        return;
    closep(&dir->lock_fd);
    closep(&dir->fd);
    free(dir);
}

const char *runtime_dir_url(const struct runtime_dir *dir)
{
    return dir->url;
}
