/* template_prune.c - see template_prune.h. */
#include "template_prune.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "template_file.h"

#define KEY_BYTES (HASH_SHA256_HEX_BYTES - 1)
#define ABANDONED_SECONDS 3600 /* writing one takes seconds */
#define BLOCK_BYTES 512u       /* of st_blocks */

struct kept {
    char name[KEY_BYTES + 16];
    time_t used;
    uint64_t bytes;
};

static bool is_temporary(const char *name)
{
    return strlen(name) == KEY_BYTES + sizeof(TEMPLATE_TEMPORARY) - 1 && name[KEY_BYTES] == '.';
}

/* The template used before all others; false: there is none. Removes leavings on the way. */
static bool find_oldest(DIR *folder, struct kept *ret_oldest, uint64_t *ret_bytes)
{
    const time_t now = time(NULL);
    struct dirent *entry;
    bool found = false;

    *ret_bytes = 0;
    rewinddir(folder);
    while ((entry = readdir(folder))) {
        struct stat status;

        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode))
            continue;
        if (is_temporary(entry->d_name) && now - status.st_mtime > ABANDONED_SECONDS)
            (void)unlinkat(dirfd(folder), entry->d_name, 0); /* tried again next time */
        if (strlen(entry->d_name) != KEY_BYTES)
            continue;
        *ret_bytes += (uint64_t)status.st_blocks * BLOCK_BYTES;
        if (found && status.st_mtime >= ret_oldest->used)
            continue;
        found = true;
        ret_oldest->used = status.st_mtime;
        (void)snprintf(ret_oldest->name, sizeof(ret_oldest->name), "%s", entry->d_name);
    }
    return found;
}

void template_prune(const char *path, uint64_t max_bytes)
{
    DIR *folder = opendir(path);
    struct kept oldest;
    uint64_t bytes;

    if (!folder)
        return;
    while (find_oldest(folder, &oldest, &bytes) && bytes > max_bytes)
        if (unlinkat(dirfd(folder), oldest.name, 0) < 0)
            break;          /* not ours to remove */
    (void)closedir(folder); /* read only */
}
