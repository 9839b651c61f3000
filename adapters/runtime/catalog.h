/* catalog.h - the names of images, what each is made from, and which may be booted (contract
 * 7.1, 7.2).
 *
 * Reads settings; owns nothing and touches no disk. */
#pragma once

#include "error.h"
#include "settings.h"

/* Text of the source as configured, or the preset's default; borrowed from the settings. NULL:
 * no image of that name is known. */
const char *catalog_source(const struct adapter_settings *settings, const char *image);

/* Check 3 of contract 5.1.2: known and allowed, else S100. */
int catalog_check(const struct adapter_settings *settings, const char *image,
                  const char **ret_source, struct sandbox_error *err);

/* What the installer adds to a preset's default source ("npm"); NULL: nothing. */
const char *catalog_addition(const struct adapter_settings *settings, const char *image);
