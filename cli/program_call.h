/* program_call.h - a program in a sandbox, for `iii sandbox exec` and `run`: with its output as
 * it comes where the adapter can (live_program.h), else with stdin as a whole before it
 * (whole_input.h) and output at its end (program_output.h). */
#pragma once

#include "client.h"
#include "payload.h"

#define INPUT_OPTION(type)                                                                     \
    {                                                                                          \
        .name = "interactive", .letter = 'i', .kind = OPTION_FLAG,                             \
        .offset = offsetof(type, input),                                                       \
        .text = "stdin goes to the program, also that of a terminal"                           \
    }

struct program_call {
    struct payload *payload; /* of sandbox::exec; ended here */
    bool input;              /* our stdin even if it is a terminal */
    uint64_t wait_ms;        /* for the program's end */
};

/* Runs it to its end. The program's exit code, or ours after saying why. A signal ends the wait
 * and with it, as the calls and channels are left, the program. */
int program_run(struct client *client, const struct program_call *call);
