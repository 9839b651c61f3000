/* program.h - one program in a sandbox, from its slot to its outcome, for `exec` and for the
 * step of that name in `run` (contract 5.2). */
#pragma once

#include "error.h"
#include "sandbox.h"
#include "settings.h"

/* The guest has so long to confirm that a program was killed (contract 5.2.5). */
#define PROGRAM_KILL_MS 2000u

/* All borrowed until the outcome. */
struct program_spec {
    const struct text_list *argv;
    const struct env *env;
    const char *workdir;   /* NULL: the image's */
    const char *stdin_b64; /* NULL: none */
    uint64_t timeout_ms;   /* before the clamp */
};

struct program;

/* Exactly one of REPLY and ERR is not NULL; both are borrowed and may be moved (a reply that
 * was is zeroed). The slot is free. */
typedef void (*program_done_fn)(void *ctx, struct exec_reply *reply, struct sandbox_error *err);

/* Of a sandbox that is ready: takes a slot (S003), decodes stdin (S001), asks the guest. -1:
 * not begun, the slot is free, DONE does not come. Else DONE comes once, never from inside this
 * call. */
int program_start(struct sandbox *sandbox, const struct program_spec *spec,
                  const struct adapter_settings *settings, program_done_fn done, void *ctx,
                  struct program **ret_program, struct sandbox_error *err);
/* Nobody wants it any more: the whole process tree is killed, then DONE comes with an error. */
void program_cancel(struct program *program);
