/* parents.h - making the missing ancestors of a path (`parents: true`, contract 8.4, 8.10). */
#pragma once

#include "path.h"

/* Opens the directory that holds path->name (O_PATH). With MAKE, ancestors that are missing are
 * made with 0755, links followed. The descriptor, or -1: S211 (with the cure, unless MAKE),
 * S212, or as errno says. */
int parents_open(const struct path *path, bool make, struct sandbox_error *err);
