/* entry.h - an object of the file system as replies show it (contract 8.1, Entry). */
#pragma once

#include <sys/stat.h>

#include "tables.h"

/* Fills ENTRY from the object itself (lstat). 0 or -ENOMEM; codec_free() releases. */
int entry_fill(struct fs_entry *entry, const char *name, const struct stat *status);
