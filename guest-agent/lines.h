/* lines.h - a file line by line, in memory bounded by the longest line that is allowed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

#define LINE_BYTES_MAX (16u * 1024 * 1024)

struct lines {
    int fd; /* borrowed */
    struct buf data;
    size_t at;       /* of the next line in data */
    uint64_t offset; /* of data in the file */
    bool ended;      /* the file has nothing more */
};

/* One line with its `\n`, which only the last may lack. Borrowed until the next call. */
struct line {
    const char *text;
    size_t size;
    uint64_t offset; /* in the file */
};

void lines_init(struct lines *lines, int fd);
/* 1: a line; 0: the end; -EFBIG: a line over the limit; or -errno. */
int lines_next(struct lines *lines, struct line *ret_line);
/* Whether there is a NUL in the first SIZE bytes; before the first line is taken. 0, 1 or
 * -errno. */
int lines_begin_with_nul(struct lines *lines, size_t size);
void lines_done(struct lines *lines);
