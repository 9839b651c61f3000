/* program.h - one program in a sandbox, from its slot to its outcome, for `exec` and for the
 * step of that name in `run` (contract 5.2). */
#pragma once

#include "error.h"
#include "sandbox.h"
#include "settings.h"

/* The guest has so long to confirm that a program was killed (contract 5.2.5). */
#define PROGRAM_KILL_MS 2000u

/* A program whose output is handed on as it comes instead of being kept for the reply, which
 * then has none (docs/live-output.md). Borrowed until the outcome, CTX goes to each. */
struct program_live {
    /* Once, ahead of all else: the program runs, or the guest's reply tells why not (126, 127).
     * Without it the outcome is an error of the call. */
    void (*started)(void *ctx);
    /* STREAM 1 or 2. The program goes on when the bytes are given back by program_grant(). */
    void (*output)(void *ctx, unsigned stream, const uint8_t *data, size_t size);
    void (*writable)(void *ctx); /* after program_write() took less than it was given */
    bool has_input;              /* standard input comes by program_write() */
    void *ctx;
};

/* Borrowed for the call of program_start(), but for LIVE. */
struct program_spec {
    const struct text_list *argv;
    const struct env *env;
    const char *workdir;             /* NULL: the image's */
    const char *stdin_b64;           /* NULL: none */
    uint64_t timeout_ms;             /* before the clamp */
    const struct program_live *live; /* NULL: the output goes into the reply */
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

/* Of a live program. */
void program_grant(struct program *program, unsigned stream, size_t size);
size_t program_write(struct program *program, const uint8_t *data, size_t size); /* how much */
void program_end_input(struct program *program);
