/* colour.h - colours where somebody sees them: on a terminal that can, and unless NO_COLOR is
 * set. */
#pragma once

#include <stdbool.h>

enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_RED, COLOUR_GREEN, COLOUR_MAX };

/* Whether FD is a terminal that understands control sequences. */
bool colour_is_screen(int fd);
/* The sequence that begins a colour on FD, COLOUR_NONE ends it; "" where there are none. */
const char *colour(int fd, enum colour colour);
