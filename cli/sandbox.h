/* sandbox.h - the commands of `iii sandbox`, one a file. */
#pragma once

#include "command.h"

extern const struct command command_sandbox_run;
extern const struct command command_sandbox_create;
extern const struct command command_sandbox_exec;
extern const struct command command_sandbox_list;
extern const struct command command_sandbox_stop;
extern const struct command command_sandbox_upload;
extern const struct command command_sandbox_download;
extern const struct command command_sandbox_image;
