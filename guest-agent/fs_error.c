/* fs_error.c - see fs_error.h. */
#include "fs_error.h"

#include <errno.h>
#include <string.h>

static enum sandbox_code code_of(int error)
{
    switch (error) {
    case ENOENT:
        return S211;
    case ENOTDIR:
    case EISDIR:
        return S212;
    case EEXIST:
        return S213;
    case ENOTEMPTY:
        return S214;
    case EACCES:
    case EPERM:
        return S215;
    default:
        return S216;
    }
}

int fs_error(struct sandbox_error *err, int error, const char *path)
{
    char text[128];

    return sandbox_error_set(err, code_of(error), "%s: %s", path,
                             strerror_r(error, text, sizeof(text)));
}

int fs_creation_errno(int error, int folder_fd)
{
    struct stat status;

    if (error == ENOENT && fstat(folder_fd, &status) == 0 && status.st_nlink > 0)
        return EOPNOTSUPP;
    return error;
}

static const char *type_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFREG:
        return "a regular file";
    case S_IFLNK:
        return "a symbolic link";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
        return "a character device";
    case S_IFBLK:
        return "a block device";
    default:
        return "of an unknown type";
    }
}

int fs_wrong_type(struct sandbox_error *err, const char *path, mode_t found, const char *wanted)
{
    return sandbox_error_set(err, S212, "%s is %s, wanted %s", path, type_name(found), wanted);
}

int fs_parent_missing(struct sandbox_error *err, const char *path)
{
    (void)sandbox_error_set(err, S211, "the parent directory of %s does not exist", path);
    sandbox_error_add_fix_bool(err, "parents", true);
    return -1;
}
