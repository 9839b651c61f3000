/* all_types.h - every type of types.def and guest.def, for tests that look at each. */
#pragma once

#include "tables.h"

static const struct type *const all_types[] = {
#define TYPE(name, ...) &type_##name,
#define FIELD(...)
#define OBJECT(...)
#define OBJECTS(...)
#define END(...)
#include "types.def"
#define TYPE(name, ...) &type_##name,
#define FIELD(...)
#define OBJECT(...)
#define OBJECTS(...)
#define END(...)
#include "guest.def"
#undef TYPE
#undef FIELD
#undef OBJECT
#undef OBJECTS
#undef END
};

#define ALL_TYPES_COUNT (sizeof(all_types) / sizeof(all_types[0]))
