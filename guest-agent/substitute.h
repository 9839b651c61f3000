/* substitute.h - find and replace in one file, whole or not at all (contract 8.9). */
#pragma once

#include <stdint.h>

#include "pattern.h"
#include "template.h"

struct substitution {
    struct pattern *pattern;
    const struct template *template;
    bool first_only; /* of each line */
};

/* Works on the regular file NAME in FOLDER_FD; PATH is what messages call it. When something
 * matched, a new file with the old one's mode and owner takes its place. */
int substitute_file(const struct substitution *substitution, int folder_fd, const char *name,
                    const char *path, uint64_t *ret_replacements, struct sandbox_error *err);
