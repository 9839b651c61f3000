/* file.h - whole files, small ones. */
#pragma once

#include <stddef.h>

#include "buf.h"

/* Appends what is in PATH to BUF. 0, -EFBIG when it holds more than MAX_BYTES, else -errno. */
int file_read(const char *path, size_t max_bytes, struct buf *buf);
