/* template_file.h - a saved template as one file: written whole, read whole, or not at all.
 *
 * The file says itself what it is of (the key) and ends in a digest of all that stands before;
 * nothing of one that is cut, changed, another's or of another key reaches a machine. Holes
 * stay holes. Blocking: for threads. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "hash.h"

#define TEMPLATE_HELLO_MAX_BYTES 65536u
#define TEMPLATE_TEMPORARY ".XXXXXX" /* behind the key while it is written */

/* What a clone starts from. Descriptors are -1 where there is none. */
struct template_parts {
    int memory_fd;
    int state_fd;
    int disk_fd;
    struct buf hello;
};
#define TEMPLATE_NO_PARTS                                                                      \
    ((struct template_parts){ .memory_fd = -1,                                                 \
                              .state_fd = -1,                                                  \
                              .disk_fd = -1,                                                   \
                              .hello = { .limit = TEMPLATE_HELLO_MAX_BYTES } })
void template_parts_done(struct template_parts *parts);

/* An anonymous file that can be sealed. The descriptor or -errno. */
int template_memory_new(const char *name, size_t size);

/* Writes <FOLDER>/<KEY> by one rename. *CANCEL ends it early. 0, -ECANCELED, -errno. */
int template_file_write(const char *folder, const char *key, const struct template_parts *parts,
                        const atomic_bool *cancel);

/* Reads it; MEMORY_BYTES and DISK_BYTES_MAX are what this key's template must have, the disk is
 * made in SCRATCH. 0, -ENOENT: there is none, -ECANCELED, or -errno with *RET_REASON a static
 * text: it is not to be trusted. */
int template_file_read(const char *folder, const char *key, uint64_t memory_bytes,
                       uint64_t disk_bytes_max, const char *scratch, const atomic_bool *cancel,
                       struct template_parts *ret_parts, const char **ret_reason);
