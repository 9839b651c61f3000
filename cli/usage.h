/* usage.h - what --help prints, from the tables of a command. */
#pragma once

#include "command.h"

/* Appends the words, options and tail of a command: "ID [OPTIONS] -- CMD...". 0 or -ENOMEM. */
int usage_synopsis(const struct command *command, struct buf *to);
/* Prints the usage on FD. 0 or -errno. */
int usage_print(const struct command *command, int fd);
