/* function_help.h - `iii trigger FUNCTION -h`: what a function does and which fields it takes.
 */
#pragma once

#include "command.h"

/* Asks the router; when that is away, the built-in tables. The result is the exit code. */
int function_help(struct client *client, uint64_t timeout_ms, const char *function);
