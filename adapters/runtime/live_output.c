/* live_output.c - see live_output.h. */
#include "live_output.h"

#include <assert.h>
#include <string.h>

#include "codec.h"
#include "live_input.h"
#include "live_pipe.h"
#include "sandboxes.h"

enum live_state {
    LIVE_OPENING,
    LIVE_OPEN,
    LIVE_RUNNING,
    LIVE_ENDED,
    LIVE_DELIVERING,
    LIVE_STATE_MAX
};

enum { LIVE_RESULT, LIVE_STDOUT, LIVE_STDERR, LIVE_PIPES }; /* outputs: the program's numbers */

struct live_output {
    struct list node; /* in live_outputs */
    struct adapter *adapter;
    const struct live_output_events *events;
    void *ctx;
    enum live_state state;
    struct live_pipe pipes[LIVE_PIPES];
    unsigned made; /* channels that are there; LIVE_OPENING */
    struct program_live hooks;
    struct program *program; /* LIVE_RUNNING */
    char sandbox_id[UUID_TEXT_BYTES];
    struct live_input input;
    struct loop_timer *timer; /* output waits for its reader */
    bool settling;            /* an end is being told to several pipes */
};

static void live_set_state(struct live_output *live, enum live_state state)
{
    static const unsigned moves[] = {
        [LIVE_OPENING] = 1u << LIVE_OPEN,
        [LIVE_OPEN] = 1u << LIVE_RUNNING,
        [LIVE_RUNNING] = 1u << LIVE_ENDED,
        [LIVE_ENDED] = 1u << LIVE_DELIVERING,
        [LIVE_DELIVERING] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == LIVE_STATE_MAX, "moves of each state");

    assert(moves[live->state] & 1u << state);
    live->state = state;
}

/* All of the adapter. */

void live_outputs_init(struct live_outputs *outputs)
{
    list_init(&outputs->all);
}

void live_outputs_done(struct live_outputs *outputs)
{
    while (!list_empty(&outputs->all))
        live_output_free(LIST_ENTRY(outputs->all.next, struct live_output, node));
}

/* The request. */

int live_output_check(const struct live_output_keys *keys, struct sandbox_error *err)
{
    const char *direction = keys->stdin_stream ? keys->stdin_stream->direction : "read";

    if (!keys->stream && keys->stdin_stream)
        return sandbox_error_set(err, S001,
                                 "stdin_stream: expected only together with stream: true");
    if (keys->stdin_stream && keys->stdin_b64)
        return sandbox_error_set(err, S001,
                                 "stdin_stream: expected not together with stdin, got both");
    if (strcmp(direction, "read") != 0)
        return sandbox_error_set(
            err, S001,
            "stdin_stream: expected a channel reference with direction \"read\", got \"%.60s\"",
            direction);
    if (keys->stream && keys->idempotency_key)
        return sandbox_error_set(err, S001,
                                 "idempotency_key: expected not together with stream: true; a "
                                 "stream cannot be repeated");
    return 0;
}

/* The channels. */

/* Frees it when the owner and all readers are gone. */
static void live_settle(struct live_output *live)
{
    if (live->state != LIVE_DELIVERING || live->settling)
        return;
    for (unsigned i = 0; i < LIVE_PIPES; i++) {
        if (live->pipes[i].state != LIVE_PIPE_OVER)
            return;
    }
    live_output_free(live);
}

static void on_made(void *ctx, struct live_pipe *pipe, struct sandbox_error *err)
{
    struct live_output *live = ctx;

    if (err) {
        live->events->opened(live->ctx, err);
        return;
    }
    if (++live->made < LIVE_PIPES)
        return;
    live_set_state(live, LIVE_OPEN);
    live->events->opened(live->ctx, NULL);
}

static void on_moved(void *ctx, struct live_pipe *pipe, size_t size)
{
    struct live_output *live = ctx;
    unsigned stream = (unsigned)(pipe - live->pipes);

    if (live->program && stream != LIVE_RESULT)
        program_grant(live->program, stream, size);
}

static void on_over(void *ctx, struct live_pipe *pipe, bool left)
{
    struct live_output *live = ctx;

    if (left && pipe == &live->pipes[LIVE_RESULT] && live->state == LIVE_RUNNING)
        live->events->abandoned(live->ctx);
    else
        live_settle(live);
}

static void on_unattached(void *ctx)
{
    struct live_output *live = ctx;

    live->settling = true;
    for (unsigned i = LIVE_STDOUT; i < LIVE_PIPES; i++) {
        if (live->pipes[i].state == LIVE_PIPE_WAITING)
            live_pipe_abort(&live->pipes[i], "no reader came within 10 s");
    }
    live->settling = false;
    live_settle(live);
}

/* The program. */

static void on_started(void *ctx)
{
    struct live_output *live = ctx;

    loop_timer_arm(live->timer, LIVE_OUTPUT_UNATTACHED_MS);
    live->events->started(live->ctx);
}

static void on_output(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct live_output *live = ctx;

    live_pipe_add(&live->pipes[stream], data, size);
}

static void on_input_writable(void *ctx)
{
    struct live_output *live = ctx;

    live_input_flush(&live->input);
}

/* Its output ends with the program, whatever the outcome: that is the result's to tell. */
static void on_ended(void *ctx, struct exec_reply *reply, struct sandbox_error *err)
{
    struct live_output *live = ctx;
    struct sandbox_error broken = { 0 };

    live->program = NULL;
    live_set_state(live, LIVE_ENDED);
    if (err && live->input.broken[0]) {
        (void)sandbox_error_set(&broken, S218,
                                "sandbox %s, exec: the stream of stdin was aborted: %s",
                                live->sandbox_id, live->input.broken);
        err = &broken;
    }
    live_input_done(&live->input);
    live_pipe_end(&live->pipes[LIVE_STDOUT]);
    live_pipe_end(&live->pipes[LIVE_STDERR]);
    live->events->ended(live->ctx, reply, err);
    sandbox_error_done(&broken);
}

int live_output_start(struct live_output *live, struct sandbox *sandbox,
                      const struct program_spec *spec, const struct channel_ref *stdin_stream,
                      const struct adapter_settings *settings, struct sandbox_error *err)
{
    struct program_spec with_hooks = *spec;
    struct sandbox_error broken = { 0 };

    live->hooks = (struct program_live){ .started = on_started,
                                         .output = on_output,
                                         .writable = on_input_writable,
                                         .has_input = stdin_stream != NULL,
                                         .ctx = live };
    with_hooks.live = &live->hooks;
    memcpy(live->sandbox_id, sandbox_id(sandbox), UUID_TEXT_BYTES);
    if (program_start(sandbox, &with_hooks, settings, on_ended, live, &live->program, err) < 0)
        return -1;
    live_set_state(live, LIVE_RUNNING);
    if (stdin_stream && live_input_init(&live->input, live->adapter, stdin_stream,
                                        live->program, &broken) < 0) {
        memcpy(live->input.broken, "no memory", sizeof("no memory"));
        program_cancel(live->program);
    }
    sandbox_error_done(&broken);
    return 0;
}

struct exec_stream_reply live_output_reply(const struct live_output *live)
{
    return (struct exec_stream_reply){
        .sandbox_id = (char *)live->sandbox_id,
        .stdout_stream = live_pipe_ref(&live->pipes[LIVE_STDOUT]),
        .stderr_stream = live_pipe_ref(&live->pipes[LIVE_STDERR]),
        .result_stream = live_pipe_ref(&live->pipes[LIVE_RESULT]),
    };
}

bool live_output_running(const struct live_output *live)
{
    return live->state == LIVE_RUNNING;
}

void live_output_cancel(struct live_output *live)
{
    if (live->program)
        program_cancel(live->program);
}

/* The result. */

static void live_deliver(struct live_output *live, int result, const struct buf *json)
{
    live_set_state(live, LIVE_DELIVERING);
    live->settling = true;
    if (result == 0)
        live_pipe_add(&live->pipes[LIVE_RESULT], json->data, json->size);
    if (result == 0)
        live_pipe_end(&live->pipes[LIVE_RESULT]);
    else
        live_pipe_abort(&live->pipes[LIVE_RESULT], "no memory for the result");
    live->settling = false;
    live_settle(live);
}

void live_output_finish(struct live_output *own_live, const struct type *type,
                        const void *reply)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };
    int result = buf_append_text(&json, "{\"reply\":");

    if (result == 0)
        result = codec_encode_json(type, reply, false, &json);
    if (result == 0)
        result = buf_append_byte(&json, '}');
    live_deliver(own_live, result, &json);
}

void live_output_fail(struct live_output *own_live, struct sandbox_error *err)
{
    _cleanup_(buf_done)
    struct buf json = { 0 };
    int result = buf_append_text(&json, "{\"error\":");

    if (result == 0)
        result = sandbox_error_encode(err, adapter_docs_base(own_live->adapter), &json);
    if (result == 0)
        result = buf_append_byte(&json, '}');
    sandbox_error_done(err);
    live_deliver(own_live, result, &json);
}

/* Life. */

void live_output_free(struct live_output *live)
{
    if (!live)
        return;
    list_remove(&live->node);
    live_input_done(&live->input);
    for (unsigned i = 0; i < LIVE_PIPES; i++)
        live_pipe_done(&live->pipes[i]);
    loop_timer_free(live->timer);
    free(live);
}

static int live_open(struct live_output *live, struct sandbox_error *err)
{
    static const struct live_pipe_events events = {
        .made = on_made,
        .moved = on_moved,
        .over = on_over,
    };

    if (loop_timer_new(adapter_loop(live->adapter), on_unattached, live, &live->timer) < 0)
        return sandbox_error_set(err, S300, "no memory for channels");
    for (unsigned i = 0; i < LIVE_PIPES; i++) {
        if (live_pipe_init(&live->pipes[i], live->adapter, &events, live, err) < 0)
            return -1;
    }
    return 0;
}

int live_output_new(struct adapter *adapter, const struct live_output_events *events, void *ctx,
                    struct live_output **ret_live, struct sandbox_error *err)
{
    struct live_output *live = calloc(1, sizeof(*live));

    if (!live)
        return sandbox_error_set(err, S300, "no memory for channels");
    live->adapter = adapter;
    live->events = events;
    live->ctx = ctx;
    list_append(&sandboxes_live_outputs(adapter_sandboxes(adapter))->all, &live->node);
    if (live_open(live, err) < 0) {
        live_output_free(live);
        return -1;
    }
    *ret_live = live;
    return 0;
}
