/* exec.h - one program from its CALL to its REPLY (contract 5.2, docs/agent-protocol.md). */
#pragma once

#include "serve.h"

/* Begins the exec; it registers itself, or answers ERROR S300 at once. REQUEST is borrowed for
 * the call. */
void exec_begin(struct serve *serve, uint64_t id, const struct guest_exec *request);

/* Sends the signal to the process group of the exec's program, if it runs. False: the call is
 * no exec. */
bool exec_signal(struct call *call, int number);
