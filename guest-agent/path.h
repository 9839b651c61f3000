/* path.h - the path and mode texts of requests (contract 8.1). */
#pragma once

#include <sys/types.h>

#include "error.h"

#define PATH_BYTES_MAX 4095u /* the most that the kernel takes, too */

/* An absolute path without slashes at its end. */
struct path {
    char text[PATH_BYTES_MAX + 1];
    size_t
        parent_size;  /* of the text before the last part; 1 for one directly below the root */
    const char *name; /* the last part, in `text`; "/" for the root */
};

/* S210 names the FIELD. */
int path_init(struct path *path, const char *field, const char *text,
              struct sandbox_error *err);

/* Opens the parent (O_PATH, links followed) for *at() calls with path->name, which is "." for
 * the root. The descriptor or -errno. */
int path_open_parent(const struct path *path);
const char *path_name_at(const struct path *path);

/* 1 to 5 octal digits, at most 07777; else S210. */
int mode_parse(const char *text, mode_t *ret_mode, struct sandbox_error *err);
#define MODE_TEXT_BYTES 8
void mode_format(mode_t mode, char ret_text[MODE_TEXT_BYTES]); /* four octal digits */
