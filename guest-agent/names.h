/* names.h - the names in a directory, in byte order, without `.` and `..`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct names {
    struct buf text;  /* the names, each with its NUL */
    size_t *offsets;  /* of each in `text`, sorted */
    size_t count;     /* names held */
    size_t capacity;  /* of offsets */
    uint64_t entries; /* in the directory; more than count when the limit was passed */
};

/* What one directory may take of memory in names; walks stop at it with an error. */
#define NAMES_BYTES_MAX (64u * 1024 * 1024)

/* Reads the directory FD (borrowed; its position moves). Names past LIMIT_BYTES are counted but
 * not held. 0 or -errno; NAMES is to be released in any case. */
int names_read(struct names *names, int fd, size_t limit_bytes);
const char *names_get(const struct names *names, size_t index);
void names_done(struct names *names);
