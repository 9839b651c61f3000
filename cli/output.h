/* output.h - what the commands print: JSON for people and for jq, errors, texts. */
#pragma once

#include "buf.h"
#include "span.h"

/* Appends VALUE (checked JSON) indented by 2, keys sorted, one final newline. Numbers stay as
 * they came, characters beyond ASCII raw. 0, -ENOMEM. */
int output_format(struct span value, struct buf *to);

/* Writes all of it; 0 or -errno. */
int output_write(int fd, const void *data, size_t size);

/* The error envelope in the error object of a frame: its `message` where that holds one, else
 * {code, message}. Appends JSON. 0, -ENOMEM. */
int output_envelope(struct span error, struct buf *to);

/* The member's text, appended; nothing when it is no text. 0, -ENOMEM. */
int output_member_text(struct span object, const char *name, struct buf *to);
