/* completion.h - the shells that iii can complete in. */
#pragma once

#include <stddef.h>

/* The name of the I-th; NULL: there are no more. */
const char *completion_shell(size_t i);
