/* worker_log.c - see worker_log.h. */
#include "worker_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "utf8.h"

int worker_log_init(struct worker_log *log, const char *folder)
{
    char path[4096];

    *log = (struct worker_log){ .fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) };
    if (log->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return log->fd < 0 ? -errno : 0;
    if (snprintf(path, sizeof(path), "%s/log-XXXXXX", folder) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    log->fd = mkostemp(path, O_CLOEXEC);
    if (log->fd < 0)
        return -errno;
    (void)unlink(path); /* ours alone; a name would only be left behind */
    return 0;
}

void worker_log_done(struct worker_log *log)
{
    closep(&log->fd);
}

/* Bytes [AT, AT + SIZE) of all that ever came, by TRANSFER; they lie in the ring in at most two
 * pieces. */
static int ring_transfer(const struct worker_log *log, uint64_t at, uint8_t *data, size_t size,
                         ssize_t (*transfer)(int fd, void *data, size_t size, off_t offset))
{
    while (size > 0) {
        off_t offset = (off_t)(at % LIMIT_WORKER_LOG_BYTES);
        size_t room = LIMIT_WORKER_LOG_BYTES - (size_t)offset;
        ssize_t done = transfer(log->fd, data, size < room ? size : room, offset);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        at += (uint64_t)done;
        data += done;
        size -= (size_t)done;
    }
    return 0;
}

static ssize_t ring_write(int fd, void *data, size_t size, off_t offset)
{
    return pwrite(fd, data, size, offset);
}

static void log_put(struct worker_log *log, const uint8_t *data, size_t size)
{
    if (log->fd < 0 || size == 0)
        return;
    if (size > LIMIT_WORKER_LOG_BYTES) {
        log->total += size - LIMIT_WORKER_LOG_BYTES;
        data += size - LIMIT_WORKER_LOG_BYTES;
        size = LIMIT_WORKER_LOG_BYTES;
    }
    if (ring_transfer(log, log->total, (uint8_t *)(uintptr_t)data, size, ring_write) == 0)
        log->total += size;
}

void worker_log_flush(struct worker_log *log, unsigned stream)
{
    log_put(log, log->torn[stream - 1].bytes, log->torn[stream - 1].size);
    log->torn[stream - 1].size = 0;
}

void worker_log_add(struct worker_log *log, unsigned stream, const uint8_t *data, size_t size)
{
    size_t whole = utf8_complete_size(data, size);
    size_t rest = size - whole;

    worker_log_flush(log, stream); /* what completes it follows at once */
    log_put(log, data, whole);
    if (rest <= sizeof(log->torn[0].bytes)) {
        memcpy(log->torn[stream - 1].bytes, data + whole, rest);
        log->torn[stream - 1].size = rest;
    }
}

int worker_log_tail(const struct worker_log *log, size_t tail_bytes, struct buf *to,
                    bool *ret_truncated)
{
    uint64_t kept = log->total < LIMIT_WORKER_LOG_BYTES ? log->total : LIMIT_WORKER_LOG_BYTES;
    size_t wanted = kept < tail_bytes ? (size_t)kept : tail_bytes;
    _cleanup_free_ uint8_t *raw = malloc(wanted ? wanted : 1);
    _cleanup_(buf_done)
    struct buf text = { 0 };
    size_t at = 0, start;
    int result;

    if (!raw)
        return -ENOMEM;
    result = ring_transfer(log, log->total - wanted, raw, wanted, pread);
    if (result < 0)
        return result;
    if (wanted < log->total) /* not from the middle of a character */
        while (at < wanted && at < 3 && (raw[at] & 0xc0) == 0x80)
            at++;
    result = utf8_repair(&text, raw + at, wanted - at);
    if (result < 0)
        return result;
    /* What was repaired may have grown. */
    start = text.size > tail_bytes ? text.size - tail_bytes : 0;
    while (start < text.size && start > 0 && (text.data[start] & 0xc0) == 0x80)
        start++;
    *ret_truncated = wanted - at < log->total || start > 0;
    return text.size > start ? buf_append(to, text.data + start, text.size - start) : 0;
}
