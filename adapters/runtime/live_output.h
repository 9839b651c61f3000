/* live_output.h - a program whose output goes to channels as it comes, for `exec` and `run`
 * with `stream` (docs/live-output.md): stdout, stderr, the result, and stdin from a channel.
 *
 * States, moved by live_output.c alone:
 *   opening    the router makes the channels
 *   open       live_output_start() is awaited
 *   running    the program runs
 *   ended      the program is over; the owner's word is awaited
 *   delivering the owner is gone; what is left is read, then it frees itself */
#pragma once

#include "adapter.h"
#include "list.h"
#include "program.h"

#define LIVE_OUTPUT_UNATTACHED_MS LIMIT_OUTPUT_UNATTACHED_MS

struct live_output;

struct live_output_events {
    /* The channels are there, or ERR says why not. */
    void (*opened)(void *ctx, struct sandbox_error *err);
    /* The program runs: the time to tell the caller of the channels. */
    void (*started)(void *ctx);
    /* As program_done_fn; without `started` before, the channels are of no use. */
    program_done_fn ended;
    /* Whoever read the result left ahead of it. */
    void (*abandoned)(void *ctx);
};

/* All of the adapter, so that its end finds them; in sandboxes.c. */
struct live_outputs {
    struct list all;
};
void live_outputs_init(struct live_outputs *outputs);
void live_outputs_done(struct live_outputs *outputs);

/* Contract 4.1 and docs/live-output.md: what `stream` allows beside it (S001). Any may be NULL.
 */
struct live_output_keys {
    bool stream;
    const char *stdin_b64;
    const struct channel_ref *stdin_stream;
    const char *idempotency_key;
};
int live_output_check(const struct live_output_keys *keys, struct sandbox_error *err);

int live_output_new(struct adapter *adapter, const struct live_output_events *events, void *ctx,
                    struct live_output **ret_live, struct sandbox_error *err);
/* program_start() with the output to the channels; STDIN_STREAM may be NULL. */
int live_output_start(struct live_output *live, struct sandbox *sandbox,
                      const struct program_spec *spec, const struct channel_ref *stdin_stream,
                      const struct adapter_settings *settings, struct sandbox_error *err);
/* What the caller is told; borrows from LIVE. */
struct exec_stream_reply live_output_reply(const struct live_output *live);
bool live_output_running(const struct live_output *live);
/* Nobody wants the program any more: `ended` comes with an error. */
void live_output_cancel(struct live_output *live);

/* The owner's last word after `ended`: delivers the result; LIVE is consumed. ERR is moved. */
void live_output_finish(struct live_output *own_live, const struct type *type,
                        const void *reply);
void live_output_fail(struct live_output *own_live, struct sandbox_error *err);
/* Gives the channels up. Not while running. NULL is fine. */
void live_output_free(struct live_output *live);
