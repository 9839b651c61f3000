/* program_output.h - what a program in a sandbox wrote and how it ended, as ours. */
#pragma once

#include "client.h"

/* Of an answered sandbox::exec: its stdout and stderr on ours (the last of them on S200), a
 * line for each truncated stream, errors as sandbox_call.h tells them. The exit code. */
int program_output(struct client *client, const struct client_call *call);

/* Of a streamed one, whose output is on ours already: RESULT is what its result_stream said.
 * The exit code, after telling an error. */
int program_result(struct span result);
