/* glob.h - which files a request means (contract 8.12). */
#pragma once

#include <stdbool.h>

#include "error.h"
#include "tables.h"

#define GLOBS_MAX 256u
#define GLOB_BYTES_MAX 4095u

/* RELATIVE: the path below the root; of a single file its name. */
bool glob_match(const char *glob, const char *relative);

/* Included by one of INCLUDE (all, when that is empty) and excluded by none. */
bool globs_choose(const struct text_list *include, const struct text_list *exclude,
                  const char *relative);

/* S210 over a limit. */
int globs_check(const char *field, const struct text_list *globs, struct sandbox_error *err);
