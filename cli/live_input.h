/* live_input.h - our stdin into a channel, as it comes, for a program in a sandbox.
 *
 * The channel is opened at once, so that an end without a byte is an end. Its reader may leave
 * at any time: what nobody wants is not read any more. */
#pragma once

#include "source.h"
#include "transfer.h"

struct live_input {
    struct transfer transfer;
    struct source source;
};

/* WRITER is a channel ref. 0 or -errno. Zero-initialised before, but for transfer.client. */
int live_input_begin(struct live_input *input, struct span writer);
void live_input_done(struct live_input *input); /* zero-initialised is fine */
