/* settings_text.h - what a case file says of the configuration, as YAML text. */
#pragma once

#include "buf.h"
#include "case.h"
#include "variables.h"

struct settings_source {
    const struct case_file *file;
    const char *const *sets; /* KEY=VALUE, of the command line */
    size_t set_count;
    const char *image;
    const struct variables *variables; /* put into what comes out */
};

/* What goes below `sandbox.settings`. Of a key that stands in several the first wins: CHANGES
 * (a map, or NULL), the file's settings, the sets, the allowlist for the image. 0, -ENOMEM,
 * -EINVAL (a set without =). */
int settings_text(const struct settings_source *source, const struct yaml_node *changes,
                  struct buf *to);
/* What goes below `sandbox` itself: SECTION (YAML, indented by 2, or NULL) and the file's. */
int settings_section_text(const struct case_file *file, const char *section, struct buf *to);
