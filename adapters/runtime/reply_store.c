/* reply_store.c - see reply_store.h.
 *
 * The file only grows in its numbers: a dropped reply gives its blocks back as a hole, and when
 * the last one goes the file begins anew. Writes go to the page cache of a local disk. */
#include "reply_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

struct reply_store {
    char *directory;
    int fd; /* -1: not needed yet */
    off_t end;
    size_t in_file; /* replies */
};

int reply_store_new(const char *directory, struct reply_store **ret_store)
{
    struct reply_store *store = calloc(1, sizeof(*store));

    if (!store)
        return -ENOMEM;
    store->fd = -1;
    store->directory = strdup(directory);
    if (!store->directory) {
        free(store);
        return -ENOMEM;
    }
    *ret_store = store;
    return 0;
}

void reply_store_free(struct reply_store *store)
{
    if (!store)
        return;
    closep(&store->fd);
    free(store->directory);
    free(store);
}

/* File systems without O_TMPFILE get a named file that loses its name at once. */
static int open_unlinked(const char *directory)
{
    char path[4096];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd >= 0 ? fd : -errno;
    if (snprintf(path, sizeof(path), "%s/replies-XXXXXX", directory) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    (void)unlink(path); /* at worst an empty name is left */
    return fd;
}

static int write_all(int fd, const uint8_t *data, size_t size, off_t offset)
{
    while (size > 0) {
        ssize_t written = pwrite(fd, data, size, offset);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        data += written;
        size -= (size_t)written;
        offset += written;
    }
    return 0;
}

static void punch(struct reply_store *store, off_t offset, size_t size)
{
    /* Where holes are not possible the room comes back when the file begins anew. */
    (void)fallocate(store->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)size);
}

static int put_in_file(struct reply_store *store, const void *data, size_t size,
                       struct stored_reply *ret_reply)
{
    int ret;

    if (store->fd < 0) {
        ret = open_unlinked(store->directory);
        if (ret < 0)
            return ret;
        store->fd = ret;
    }
    ret = write_all(store->fd, data, size, store->end);
    if (ret < 0) {
        punch(store, store->end, size);
        return ret;
    }
    *ret_reply = (struct stored_reply){ .offset = store->end, .size = size };
    store->end += (off_t)size;
    store->in_file++;
    return 0;
}

int reply_store_put(struct reply_store *store, const void *data, size_t size,
                    struct stored_reply *ret_reply)
{
    uint8_t *copy;

    if (size > REPLY_STORE_MEMORY_BYTES) {
        int ret = put_in_file(store, data, size, ret_reply);

        if (ret == 0)
            return 0;
        log_event(LOG_WARN, "reply_store_full", log_text("directory", store->directory),
                  log_text("error", strerror(-ret)));
    }
    copy = malloc(size > 0 ? size : 1);
    if (!copy)
        return -ENOMEM;
    if (size > 0)
        memcpy(copy, data, size);
    *ret_reply = (struct stored_reply){ .data = copy, .size = size };
    return 0;
}

int reply_store_get(const struct reply_store *store, const struct stored_reply *reply,
                    struct buf *to)
{
    size_t done = 0;
    uint8_t *room;

    if (reply->data)
        return buf_append(to, reply->data, reply->size);
    room = buf_reserve(to, reply->size);
    if (!room)
        return -ENOMEM;
    while (done < reply->size) {
        ssize_t got = pread(store->fd, room + done, reply->size - done,
                            reply->offset + (off_t)done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        done += (size_t)got;
    }
    to->size += reply->size;
    return 0;
}

void reply_store_drop(struct reply_store *store, struct stored_reply *reply)
{
    if (reply->data || reply->size == 0) {
        free(reply->data);
    } else if (--store->in_file == 0) {
        if (ftruncate(store->fd, 0) < 0)
            punch(store, 0, (size_t)store->end);
        store->end = 0;
    } else {
        punch(store, reply->offset, reply->size);
    }
    *reply = (struct stored_reply){ 0 };
}
