/* hint.h - what somebody at a terminal may have meant. Scripts see none of it: there stderr is
 * as iii-wire 5 says. */
#pragma once

#include "args.h"

/* The name that is nearest to FUNCTION among those that are known here; NULL: none is near. */
const char *hint_nearest_function(const char *function);
/* Of a function that does not exist. */
void hint_function(const char *function);
/* Of each key that the function's table does not have. */
void hint_fields(const struct args *args);
