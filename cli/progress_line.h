/* progress_line.h - one line that says how far something is: its step, a bar where the total is
 * known, bytes, rate and time. ASCII alone, cut to the width of the terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_LINE_MAX_BYTES 256u

struct progress_line {
    const char *step;
    bool has_bytes; /* the four below mean something */
    uint64_t done_bytes;
    uint64_t total_bytes;      /* 0: unknown */
    uint64_t bytes_per_second; /* 0: reckoned from the next */
    uint64_t step_ms;          /* since the bytes began to move */
    uint64_t elapsed_ms;
};

/* Writes the line, NUL-terminated, of less than COLUMNS characters. Its length. */
size_t progress_line_write(const struct progress_line *line, unsigned columns,
                           char ret_text[PROGRESS_LINE_MAX_BYTES]);
