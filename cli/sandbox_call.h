/* sandbox_call.h - what the commands of `iii sandbox` share: a call, and how its failure is
 * told. */
#pragma once

#include "command.h"
#include "payload.h"

#define SANDBOX_CREATE_TIMEOUT_MS 300000u
/* Contract 5.2.1: what timeout_ms is when it is not given. */
#define SANDBOX_EXEC_STANDARD_MS 300000u
#define SANDBOX_EXEC_EXTRA_MS 10000u
#define SANDBOX_CALL_TIMEOUT_MS 60000u

/* Calls FUNCTION and waits. EXIT_CODE_DONE: call->answer is the result. Else stderr says why,
 * and the result is the exit code. The payload is ended here. */
int sandbox_call(struct client *client, struct client_call *call, const char *function,
                 struct payload *payload, uint64_t timeout_ms);

/* The second half of it, for a call that was begun and waited for elsewhere. */
int sandbox_outcome(const struct client *client, const struct client_call *call,
                    enum client_outcome outcome, const char *function, uint64_t timeout_ms);

/* Says `error: …` on stderr. EXIT_CODE_FAILED. */
int sandbox_complain(const char *format, ...) _printf_(1, 2);

/* To stdout, all of it. EXIT_CODE_DONE, or EXIT_CODE_FAILED after saying why not. */
int sandbox_print(const void *text, size_t size);
int sandbox_printf(const char *format, ...) _printf_(1, 2);

/* The same of an error envelope: `error: [S211] no such file: /x`. */
int sandbox_complain_of(struct span envelope);

/* The result that CALL was answered with, and the envelope of its error (appended). */
struct span sandbox_result(const struct client_call *call);
int sandbox_envelope(const struct client_call *call, struct buf *ret_json,
                     struct span *ret_envelope);

/* Adds `-e K=V` to the payload, if there are any. */
void sandbox_put_env(struct payload *payload, const struct option_texts *env);
