/* all_types.h - every type of all_types.def, for tests that look at each. */
#pragma once

#include "tables.h"

static const struct type *const all_types[] = {
#define TYPE(name, ...) &type_##name,
#define FIELD(...)
#define OBJECT(...)
#define OBJECTS(...)
#define END(...)
#include "all_types.def"
};

#define ALL_TYPES_COUNT (sizeof(all_types) / sizeof(all_types[0]))
