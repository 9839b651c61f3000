/* frozen.h - the files in frozen/: what was sent by each published minor, byte for byte. They
 * are never made anew; a new minor adds files. */
#pragma once

#include "buf.h"
#include "span.h"
#include "tables.h"

/* The text of frozen/NAME; fails the test when it cannot be read. The caller frees. */
char *frozen_load(const char *name);
/* Takes the next line off *TEXT (its end becomes a NUL); NULL: no more. */
char *frozen_next_line(char **text);

/* A line of replies-1.<minor>.jsonl. */
struct frozen_reply {
    const struct operation *operation;
    bool is_error;
    struct span body;
};
/* Points into LINE. */
struct frozen_reply frozen_reply_parse(const char *line);
/* The recorded reply of NAME by an adapter of that minor, or a copy of NULL. The caller frees.
 */
char *frozen_reply_find(unsigned minor, const char *name);
