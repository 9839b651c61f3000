/* environment.h - the environment of a program from its layers (contract 4.3). */
#pragma once

#include "tables.h"

/* The agent's defaults, then each layer of "NAME=VALUE"; a later one wins. Entries without `=`
 * or with an empty name are left out. NULL-terminated; the texts are borrowed from the layers,
 * the caller frees the array. NULL: no memory. */
char **environment_merge(const struct text_list *const *layers, size_t layer_count);
