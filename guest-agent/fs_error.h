/* fs_error.h - from errno to the code of a file operation (contract 8.1). */
#pragma once

#include <sys/stat.h>

#include "error.h"

/* ERROR (errno) on the object PATH. An operation's own rules go before this table. Always -1.
 */
int fs_error(struct sandbox_error *err, int error, const char *path);

/* ERROR of making something new in the open FOLDER_FD. Of a file system that takes nothing new,
 * like proc, Linux says that the name does not exist; while the folder itself is there, that is
 * EOPNOTSUPP. */
int fs_creation_errno(int error, int folder_fd);

/* S212: PATH is something else than is wanted. */
int fs_wrong_type(struct sandbox_error *err, const char *path, mode_t found,
                  const char *wanted);

/* S211 for PATH whose parent is missing, with the cure `parents: true`. */
int fs_parent_missing(struct sandbox_error *err, const char *path);
