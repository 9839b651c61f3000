/* program.h - the file that QEMU is, and whether it still is that one: packages are upgraded
 * while machines run. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "proc.h"

struct program {
    char path[PROC_PATH_MAX];
    struct stat status; /* when it was looked up */
};

/* NAME is a path, or a name on PATH. 0 or -errno. */
int program_find(const char *name, struct program *ret_program);
/* Whether PATH (of a process: /proc/PID/exe) is that file, unchanged. */
bool program_is(const struct program *program, const char *path);
bool program_unchanged(const struct program *program);
