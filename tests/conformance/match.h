/* match.h - JSON values against the patterns of README.md. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "buf.h"

/* True when VALUE matches; else WHY tells where and what differed. VALUE NULL: absent. */
bool match_json(const json_t *pattern, const json_t *value, struct buf *why);
/* PATTERN as JSON text. */
bool match_text(const char *pattern, const json_t *value, struct buf *why);
