/* runtime_dir.h - the directory of router.sock: ours alone, and one router in it.
 *
 * It is 0700 and belongs to our uid; a lock in it is held for the process's life, so that a
 * second router on the same directory is refused and a socket left behind can be removed. */
#pragma once

#include "cleanup.h"

struct runtime_dir;

#define RUNTIME_DIR_ERROR_MAX 512

/* Makes PATH (its last part) when it is missing. 0, or -errno and a line for people. */
int runtime_dir_open(const char *path, struct runtime_dir **ret_dir,
                     char ret_error[RUNTIME_DIR_ERROR_MAX]);
/* Gives the lock back. */
void runtime_dir_close(struct runtime_dir *dir);
DEFINE_CLEANUP(struct runtime_dir *, runtime_dir_close)

/* "ipc://<path>/router.sock" */
const char *runtime_dir_url(const struct runtime_dir *dir);
