/* program.c - see program.h. */
#include "program.h"

#include <errno.h>

int program_find(const char *name, struct program *ret_program)
{
    int result = proc_find(name, ret_program->path);

    if (result == 0 && stat(ret_program->path, &ret_program->status) < 0)
        result = -errno;
    return result;
}

bool program_is(const struct program *program, const char *path)
{
    const struct stat *was = &program->status;
    struct stat is;

    return stat(path, &is) == 0 && is.st_dev == was->st_dev && is.st_ino == was->st_ino &&
           is.st_size == was->st_size && is.st_mtim.tv_sec == was->st_mtim.tv_sec &&
           is.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

bool program_unchanged(const struct program *program)
{
    return program_is(program, program->path);
}
