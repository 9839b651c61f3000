/* live_pipe.c - see live_pipe.h. */
#include "live_pipe.h"

#include <assert.h>
#include <string.h>

static void pipe_set_state(struct live_pipe *pipe, enum live_pipe_state state)
{
    static const unsigned moves[] = {
        [LIVE_PIPE_MAKING] = 1u << LIVE_PIPE_WAITING | 1u << LIVE_PIPE_OVER,
        [LIVE_PIPE_WAITING] = 1u << LIVE_PIPE_FLOWING | 1u << LIVE_PIPE_OVER,
        [LIVE_PIPE_FLOWING] = 1u << LIVE_PIPE_OVER,
        [LIVE_PIPE_OVER] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == LIVE_PIPE_STATE_MAX, "moves of each state");

    assert(moves[pipe->state] & 1u << state);
    pipe->state = state;
}

/* The last step of whoever calls it: the owner may free the pipe. */
static void pipe_over(struct live_pipe *pipe, bool left)
{
    size_t size = pipe->held.size;

    pipe_set_state(pipe, LIVE_PIPE_OVER);
    buf_done(&pipe->held);
    channel_free(take_ptr(pipe->channel));
    pipe->events->moved(pipe->ctx, pipe, size);
    pipe->events->over(pipe->ctx, pipe, left);
}

static void pipe_settle(struct live_pipe *pipe)
{
    if (pipe->state != LIVE_PIPE_FLOWING || !pipe->at_end || pipe->held.size > 0)
        return;
    channel_end(pipe->channel);
    pipe_over(pipe, false);
}

static void on_writable(void *ctx)
{
    struct live_pipe *pipe = ctx;
    size_t taken = 0;

    if (pipe->state == LIVE_PIPE_WAITING)
        pipe_set_state(pipe, LIVE_PIPE_FLOWING);
    if (pipe->held.size > 0)
        taken = channel_write(pipe->channel, pipe->held.data, pipe->held.size);
    buf_consume(&pipe->held, taken);
    if (taken > 0)
        pipe->events->moved(pipe->ctx, pipe, taken);
    pipe_settle(pipe);
}

static void on_closed(void *ctx, bool clean, const char *reason)
{
    struct live_pipe *pipe = ctx;

    pipe_over(pipe, pipe->state == LIVE_PIPE_FLOWING);
}

static void on_made(void *ctx, const struct channel_ref *reader, struct sandbox_error *err)
{
    struct live_pipe *pipe = ctx;
    struct sandbox_error own = { 0 };

    if (err) { /* fs::read has S216 for it, an exec S300 */
        (void)sandbox_error_set(&own, S300, "%s", err->message);
        err = &own;
    } else {
        pipe_set_state(pipe, LIVE_PIPE_WAITING);
        pipe->channel_id = strdup(reader->channel_id);
        pipe->access_key = strdup(reader->access_key);
        if (!pipe->channel_id || !pipe->access_key) {
            (void)sandbox_error_set(&own, S300, "no memory for a channel");
            err = &own;
        }
    }
    pipe->events->made(pipe->ctx, pipe, err);
    sandbox_error_done(&own);
}

int live_pipe_init(struct live_pipe *pipe, struct adapter *adapter,
                   const struct live_pipe_events *events, void *ctx, struct sandbox_error *err)
{
    static const struct channel_events of_channel = {
        .writable = on_writable,
        .closed = on_closed,
    };

    *pipe = (struct live_pipe){ .events = events, .ctx = ctx };
    return channel_create_writer(adapter, &of_channel, pipe, on_made, &pipe->channel, err);
}

void live_pipe_done(struct live_pipe *pipe)
{
    channel_free(take_ptr(pipe->channel));
    buf_done(&pipe->held);
    free(take_ptr(pipe->channel_id));
    free(take_ptr(pipe->access_key));
}

struct channel_ref live_pipe_ref(const struct live_pipe *pipe)
{
    return (struct channel_ref){ .channel_id = pipe->channel_id,
                                 .access_key = pipe->access_key,
                                 .direction = "read" };
}

void live_pipe_add(struct live_pipe *pipe, const void *data, size_t size)
{
    size_t taken = 0;

    if (pipe->state == LIVE_PIPE_OVER) {
        pipe->events->moved(pipe->ctx, pipe, size);
        return;
    }
    if (pipe->state == LIVE_PIPE_FLOWING && pipe->held.size == 0)
        taken = channel_write(pipe->channel, data, size);
    if (taken > 0)
        pipe->events->moved(pipe->ctx, pipe, taken);
    if (buf_append(&pipe->held, (const char *)data + taken, size - taken) < 0)
        live_pipe_abort(pipe, "no memory");
}

void live_pipe_end(struct live_pipe *pipe)
{
    pipe->at_end = true;
    pipe_settle(pipe);
}

void live_pipe_abort(struct live_pipe *pipe, const char *reason)
{
    if (pipe->state == LIVE_PIPE_OVER)
        return;
    channel_abort(pipe->channel, S218, reason);
    pipe_over(pipe, false);
}
