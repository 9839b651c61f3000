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

/* The names that are known, in the order of contract 7.1. NULL: INDEX is behind the last one.
 */
const char *catalog_name(const struct adapter_settings *settings, size_t index,
                         bool *ret_is_preset);
size_t catalog_count(const struct adapter_settings *settings);
bool catalog_allows(const struct adapter_settings *settings, const char *image);

/* S100 that says PROBLEM of IMAGE and lists what may be booted. -1. */
int catalog_refuse(const struct adapter_settings *settings, const char *image,
                   const char *problem, struct sandbox_error *err);
/* Check 3 of contract 5.1.2: known and allowed, else S100. */
int catalog_check(const struct adapter_settings *settings, const char *image,
                  const char **ret_source, struct sandbox_error *err);

/* What the installer adds to a preset's default source ("npm"); NULL: nothing. */
const char *catalog_addition(const struct adapter_settings *settings, const char *image);
