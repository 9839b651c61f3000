/* temporary.h - a file that becomes visible whole or not at all (contract 8.9, 8.10).
 *
 * Written as `.iii-tmp-<uuid>` beside its destination, then renamed over it. Whatever goes
 * wrong before the rename, temporary_done() removes it and the old file is intact. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define TEMPORARY_NAME_BYTES 48

struct temporary {
    int folder_fd; /* borrowed; -1: nothing to remove */
    int fd;
    char name[TEMPORARY_NAME_BYTES];
};

#define TEMPORARY_NONE ((struct temporary){ .folder_fd = -1, .fd = -1 })

/* All of these: 0 or -errno. */
int temporary_open(struct temporary *file, int folder_fd);
/* The same for a symbolic link, which has no bytes to write. */
int temporary_link(struct temporary *file, int folder_fd, const char *target);
int temporary_write(struct temporary *file, const void *data, size_t size);
/* The same for what may be much at once (DATA is aligned to pages): whole pages then go to the
 * disk without a stay in the page cache, where the file system can do that. */
int temporary_write_much(struct temporary *file, const void *data, size_t size);
/* Owner, then exactly this mode. */
int temporary_set_owner(struct temporary *file, uid_t uid, gid_t gid, mode_t mode);
/* Renames it to NAME in its folder; REPLACE: over what is there, else -EEXIST. */
int temporary_commit(struct temporary *file, const char *name, bool replace);

void temporary_done(struct temporary *file);
