/* settings_text.h - the settings of a case file as YAML text for the adapter's configuration.
 */
#pragma once

#include "buf.h"
#include "case.h"

/* What goes below `sandbox.settings`: the file's own, then SETS (KEY=VALUE) and the allowlist
 * for IMAGE where the file says nothing of them. 0, -ENOMEM, -EINVAL (a set without =). */
int settings_text(const struct case_file *file, const char *const *sets, size_t set_count,
                  const char *image, struct buf *to);
