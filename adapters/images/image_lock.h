/* image_lock.h - <digest>.lock, the flock of whoever checks, installs or removes one image, in
 * any process. The file may be taken away by its holder, so a lock counts only on the file that
 * has the name. */
#pragma once

#define IMAGE_LOCK_MARK ".lock"

/* Makes the file if it is not there. The descriptor that holds the lock; -EWOULDBLOCK: somebody
 * has it; other -errno. */
int image_lock_take(const char *path);
/* Gives it back; without its image (IMAGE_DIRECTORY) the file goes, too. Accepts -1. */
void image_lock_give(const char *path, const char *image_directory, int own_fd);
