/* entry.c - see entry.h. */
#include "entry.h"

#include <errno.h>
#include <string.h>

#include "base64.h"
#include "path.h"
#include "utf8.h"

static int entry_name(struct fs_entry *entry, const char *name)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    _cleanup_(buf_done)
    struct buf bytes = { 0 };
    const size_t size = strlen(name);

    entry->has_name = true;
    if (utf8_valid(name, size)) {
        entry->name = strdup(name);
        return entry->name ? 0 : -ENOMEM;
    }
    if (utf8_repair(&text, name, size) < 0 || base64_encode(&bytes, name, size) < 0)
        return -ENOMEM;
    entry->name = (char *)buf_take(&text, NULL);
    entry->name_b64 = (char *)buf_take(&bytes, NULL);
    entry->has_name_b64 = true;
    return entry->name && entry->name_b64 ? 0 : -ENOMEM;
}

int entry_fill(struct fs_entry *entry, const char *name, const struct stat *status)
{
    char mode[MODE_TEXT_BYTES];

    mode_format(status->st_mode, mode);
    entry->has_is_dir = entry->has_size = entry->has_mtime = entry->has_is_symlink = true;
    entry->is_dir = S_ISDIR(status->st_mode);
    entry->is_symlink = S_ISLNK(status->st_mode);
    entry->size = (uint64_t)status->st_size;
    entry->mtime = status->st_mtime;
    entry->has_mode = true;
    entry->mode = strdup(mode);
    if (!entry->mode)
        return -ENOMEM;
    return entry_name(entry, name);
}
