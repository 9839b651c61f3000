/* live_input.h - standard input of a streamed program, out of a channel of the caller's
 * (docs/live-output.md). Lives in its owner.
 *
 * Bytes are taken from the channel as fast as the program reads them. */
#pragma once

#include "channel.h"
#include "program.h"

#define LIVE_INPUT_REASON_MAX 256

struct live_input {
    struct program *program;
    struct channel *channel; /* NULL: none, or its end came */
    struct buf pending;      /* came from the channel, not taken by the guest */
    bool begun;              /* a byte came */
    bool at_end;
    /* The writer broke off: the program was cancelled for it. "": it did not. */
    char broken[LIVE_INPUT_REASON_MAX];
};

/* Attaches to REF for PROGRAM, which lives until live_input_done(). */
int live_input_init(struct live_input *input, struct adapter *adapter,
                    const struct channel_ref *ref, struct program *program,
                    struct sandbox_error *err);
/* The program is over. Zero-initialised and twice are fine. */
void live_input_done(struct live_input *input);
/* The program takes more. */
void live_input_flush(struct live_input *input);
