/* worker_log.h - what a worker's scripts wrote: the last WORKER_LOG_BYTES of both streams,
 * joined as they came (contract 12.2).
 *
 * The bytes lie in a file without a name, used as a ring: no worker costs memory for them, none
 * fills the disk, and nothing is left of them when the process ends in whatever way. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "tables.h"

#define WORKER_LOG_STREAMS 2

struct worker_log {
    int fd;         /* -1: it could not be made; nothing is kept then */
    uint64_t total; /* bytes ever */
    /* Per stream, the start of a character whose rest has not come: it must not be torn by the
     * other stream. */
    struct {
        uint8_t bytes[4];
        size_t size;
    } torn[WORKER_LOG_STREAMS];
};

/* FOLDER holds the file. 0 or -errno; the log is usable in any case. */
int worker_log_init(struct worker_log *log, const char *folder);
void worker_log_done(struct worker_log *log);

/* STREAM 1 or 2. Without room on the disk bytes are lost, never the program. */
void worker_log_add(struct worker_log *log, unsigned stream, const uint8_t *data, size_t size);
/* The stream has ended: a character that was not completed is taken as it is. */
void worker_log_flush(struct worker_log *log, unsigned stream);

/* Appends at most the last TAIL_BYTES as UTF-8, from a character's start on; *ret_truncated:
 * older text exists. 0 or -errno. */
int worker_log_tail(const struct worker_log *log, size_t tail_bytes, struct buf *to,
                    bool *ret_truncated);
