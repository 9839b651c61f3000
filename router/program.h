/* program.h - what to start for a managed adapter: its command line and its environment. */
#pragma once

#include "settings.h"

/* The command line of SETTINGS, NULL-terminated: sandbox.command, or the program of the
 * adapter's name beside this one, or on PATH. *ret_argv NULL: none was found. 0 or -ENOMEM. */
int program_find(const struct router_settings *settings, char ***ret_argv);

/* Ours with SANDBOX_ROUTER and SANDBOX_CONFIG. 0 or -ENOMEM. */
int program_environment(const char *url, const char *config, char ***ret_environment);

bool program_equal(char *const *a, char *const *b);
void program_free(char **texts);
