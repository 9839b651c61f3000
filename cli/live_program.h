/* live_program.h - a program in a sandbox with its output on ours as it comes, and ours as its
 * input (docs/live-output.md). */
#pragma once

#include "client.h"
#include "payload.h"

/* Whether the bound adapter streams; if it cannot be learned, it does not. */
bool live_program_possible(struct client *client);

struct live_program_spec {
    struct payload *payload; /* of sandbox::exec, without the keys of streaming; ended here */
    bool input;              /* our stdin becomes its input */
    uint64_t wait_ms;        /* for the result */
};

/* Runs it to its end. The program's exit code, or ours after saying why; a signal leaves the
 * channels, which ends the program. */
int live_program_run(struct client *client, const struct live_program_spec *spec);
