/* colour.c - see colour.h. */
#include "colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool colour_is_screen(int fd)
{
    const char *terminal = getenv("TERM");

    return isatty(fd) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

const char *colour(int fd, enum colour colour)
{
    static const char *const sequences[COLOUR_MAX] = {
        [COLOUR_NONE] = "\033[0m",
        [COLOUR_BOLD] = "\033[1m",
        [COLOUR_RED] = "\033[31m",
        [COLOUR_GREEN] = "\033[32m",
    };
    const char *refused = getenv("NO_COLOR");

    return colour_is_screen(fd) && !(refused && *refused) ? sequences[colour] : "";
}
