/* reply_store.h - bytes of answers that are kept for a while: small ones in memory, large ones
 * in one unlinked file, so that thousands of them do not fill the memory. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "buf.h"

struct reply_store;

#define REPLY_STORE_MEMORY_BYTES (64u * 1024) /* larger ones go to the file */

/* Zero-initialised is empty. */
struct stored_reply {
    uint8_t *data; /* in memory; NULL: in the file */
    off_t offset;
    size_t size;
};

/* DIRECTORY is where the file is made when it is first needed; copied. */
int reply_store_new(const char *directory, struct reply_store **ret_store);
void reply_store_free(struct reply_store *store); /* nothing is stored by then */
DEFINE_CLEANUP(struct reply_store *, reply_store_free)

/* 0 or -ENOMEM: without room on the disk it is kept in memory. */
int reply_store_put(struct reply_store *store, const void *data, size_t size,
                    struct stored_reply *ret_reply);
/* Appends the bytes; 0 or -errno. */
int reply_store_get(const struct reply_store *store, const struct stored_reply *reply,
                    struct buf *to);
void reply_store_drop(struct reply_store *store, struct stored_reply *reply);
