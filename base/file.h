/* file.h - whole files, small ones. */
#pragma once

#include <stddef.h>

#include "buf.h"

/* Appends what is in the regular file PATH to BUF. 0, -EFBIG when it holds more than MAX_BYTES,
 * -EISDIR, -ENOTSUP for a FIFO, socket or device (nobody waits for whoever is to write into
 * it), else -errno. */
int file_read(const char *path, size_t max_bytes, struct buf *buf);

/* What is wrong with the file when file_read() gave RESULT; static text. */
const char *file_read_problem(int result);
