/* install_output.h - what an installer says on its standard output (docs/images.md), line by
 * line, and the tail of its standard error. Bounded, whatever comes. */
#pragma once

#include <stdbool.h>

#include "buf.h"

#define INSTALL_STAGE_MAX 64 /* with its NUL */

/* Zero-initialised is ready. */
struct install_output {
    struct buf line; /* not complete yet */
    bool line_too_long;
    bool done; /* the last line was `done` */
    /* `progress STAGE BYTES [TOTAL]`; TOTAL_BYTES is 0 when it was not said. */
    void (*progress)(void *ctx, const char *stage, uint64_t bytes, uint64_t total_bytes);
    void *ctx;
};
void install_output_take(struct install_output *output, const char *data, size_t size);
void install_output_done(struct install_output *output);

/* Zero-initialised is empty. */
struct install_errors {
    struct buf tail;
    struct buf text; /* what was made of it last */
};
void install_errors_take(struct install_errors *errors, const char *data, size_t size);
/* The last lines, without the final newline, at most 1024 bytes; "" if there are none. UTF-8
 * without control characters, whatever names of files came in: it ends in errors, logs and on
 * terminals. */
const char *install_errors_text(struct install_errors *errors);
void install_errors_done(struct install_errors *errors);
