/* fs_write_stream.c - see fs_write_stream.h.
 *
 * Bytes are taken from the channel only as fast as the guest takes them: what it cannot take
 * yet waits in `pending`, which the channel's window bounds. */
#include "fs_write_stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "adapter.h"
#include "channel.h"
#include "fs.h"
#include "log.h"

#define REASON_MAX 512

enum stream_state {
    STREAM_WAITING,  /* for the sandbox to be ready */
    STREAM_FLOWING,  /* guest and channel are open; the timer waits for the next chunk */
    STREAM_FINISHED, /* the writer closed cleanly; the guest takes the rest and answers */
    STREAM_ABORTED,  /* `reason` is set, the guest was told; the timer waits for its word */
    STREAM_STATE_MAX
};

struct stream_write {
    struct request *request;
    const struct fs_write_request *body;
    struct fs_visit visit;
    enum stream_state state;
    struct agent_call *call;
    struct channel *channel;
    struct loop_timer *timer;
    struct buf pending; /* came from the channel, not taken by the guest */
    uint64_t moved;     /* bytes that came */
    char reason[REASON_MAX];
};

static void write_set_state(struct stream_write *write, enum stream_state state)
{
    static const unsigned moves[] = {
        [STREAM_WAITING] = 1u << STREAM_FLOWING,
        [STREAM_FLOWING] = 1u << STREAM_FINISHED | 1u << STREAM_ABORTED,
        [STREAM_FINISHED] = 1u << STREAM_ABORTED,
        [STREAM_ABORTED] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == STREAM_STATE_MAX, "moves of each state");

    assert(moves[write->state] & 1u << state);
    write->state = state;
}

static void write_free(struct stream_write *write)
{
    assert(!write->call);
    channel_free(write->channel);
    loop_timer_free(write->timer);
    buf_done(&write->pending);
    fs_leave(&write->visit);
    free(write);
}

/* Outcomes. */

static void write_fail(struct stream_write *write, struct sandbox_error *err)
{
    request_on_cancel(write->request, NULL, NULL);
    request_fail(write->request, err);
    write_free(write);
}

static void write_fail_aborted(struct stream_write *write, const char *reason)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S218,
                            "%s: the stream was aborted after %" PRIu64 " bytes: %s",
                            write->body->path, write->moved, reason);
    write_fail(write, &err);
}

static void write_reply(struct stream_write *write, uint64_t bytes_written)
{
    struct fs_write_reply reply = { .bytes_written = bytes_written, .path = write->body->path };

    request_on_cancel(write->request, NULL, NULL);
    request_reply(write->request, &reply);
    write_free(write);
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct stream_write *write = ctx;
    const struct guest_fs_write_reply *written = reply;

    write->call = NULL;
    if (write->state == STREAM_ABORTED) {
        write_fail_aborted(write, write->reason);
    } else if (lost) {
        write_fail_aborted(write, sandbox_lost_cause(write->visit.sandbox, err->message));
    } else if (err) {
        fs_map_error(write->body->path, err);
        write_fail(write, err);
    } else if (write->state != STREAM_FINISHED || write->pending.size > 0) {
        write_fail_aborted(write, "the guest agent ended the write before the stream's end");
    } else {
        write_reply(write, written->bytes_written);
    }
}

/* The guest removes what it has; its word is awaited, so that nothing of it is there when the
 * caller hears of the failure. */
static void write_abort(struct stream_write *write, const char *reason)
{
    if (write->state == STREAM_ABORTED)
        return;
    (void)snprintf(write->reason, sizeof(write->reason), "%s", reason);
    write_set_state(write, STREAM_ABORTED);
    channel_abort(write->channel, S218, write->reason);
    agent_call_end(write->call, 0, write->reason);
    agent_call_cancel(write->call);
    loop_timer_arm(write->timer, FS_WRITE_ABORT_MS);
}

/* Flow. */

static uint64_t chunk_timeout_ms(const struct stream_write *write)
{
    return request_settings(write->request)->stream_idle_timeout_ms;
}

static void write_flush(struct stream_write *write)
{
    size_t taken = 0;

    if (write->pending.size > 0)
        taken = agent_call_write(write->call, 0, write->pending.data, write->pending.size);
    buf_consume(&write->pending, taken);
    channel_grant(write->channel, taken);
    if (write->state == STREAM_FINISHED && write->pending.size == 0)
        agent_call_end(write->call, 0, NULL);
}

static void on_writable(void *ctx, unsigned stream)
{
    struct stream_write *write = ctx;

    sandbox_touch(write->visit.sandbox);
    write_flush(write);
}

static void on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct stream_write *write = ctx;
    size_t taken = write->pending.size == 0 ? agent_call_write(write->call, 0, data, size) : 0;

    write->moved += size;
    sandbox_touch(write->visit.sandbox);
    loop_timer_arm(write->timer, chunk_timeout_ms(write));
    channel_grant(write->channel, taken);
    if (buf_append(&write->pending, data + taken, size - taken) < 0)
        write_abort(write, "no memory");
}

static void on_closed(void *ctx, bool clean, const char *reason)
{
    struct stream_write *write = ctx;

    if (!clean) {
        write_abort(write, reason);
        return;
    }
    loop_timer_disarm(write->timer);
    write_set_state(write, STREAM_FINISHED);
    write_flush(write);
}

/* A guest that is slow is no fault of the writer's. */
static void on_timer(void *ctx)
{
    struct stream_write *write = ctx;
    char reason[96];

    if (write->state == STREAM_ABORTED) {
        agent_call_abandon(take_ptr(write->call));
        write_fail_aborted(write, write->reason);
        return;
    }
    if (write->pending.size > 0) {
        loop_timer_arm(write->timer, chunk_timeout_ms(write));
        return;
    }
    if (write->moved == 0)
        (void)snprintf(reason, sizeof(reason), "no byte and no end came within %u ms",
                       FS_WRITE_FIRST_MS);
    else
        (void)snprintf(reason, sizeof(reason),
                       "no chunk came for stream_idle_timeout_ms %" PRIu64,
                       chunk_timeout_ms(write));
    write_abort(write, reason);
}

/* Beginning. */

static int ask_guest(struct stream_write *write, struct sandbox_error *err)
{
    static const struct agent_call_events events = {
        .writable = on_writable,
        .ended = on_ended,
    };
    const struct fs_write_request request = {
        .sandbox_id = (char *)sandbox_id(write->visit.sandbox),
        .path = write->body->path,
        .mode = write->body->mode,
        .parents = write->body->parents,
    };

    return sandbox_call(write->visit.sandbox, GUEST_fs_write, &request, &events, write,
                        &write->call, err);
}

static void on_begin(void *ctx)
{
    static const struct channel_events events = { .data = on_data, .closed = on_closed };
    struct stream_write *write = ctx;
    struct sandbox_error err = { 0 };

    if (ask_guest(write, &err) < 0) {
        struct sandbox_error lost = { 0 };

        (void)fs_set_lost(write->visit.sandbox, write->body->path, err.message, &lost);
        sandbox_error_done(&err);
        write_fail(write, &lost);
        return;
    }
    if (channel_open_reader(request_adapter(write->request), &write->body->content.stream,
                            &events, write, &write->channel, &err) < 0) {
        agent_call_end(write->call, 0, "its channel cannot be attached");
        agent_call_abandon(take_ptr(write->call));
        write_fail(write, &err);
        return;
    }
    write_set_state(write, STREAM_FLOWING);
    loop_timer_arm(write->timer, FS_WRITE_FIRST_MS);
}

static void on_failed(void *ctx, struct sandbox_error *err)
{
    write_fail(ctx, err);
}

/* Contract 2.4: as S218. */
static void on_cancel(void *ctx)
{
    struct stream_write *write = ctx;

    if (write->state == STREAM_WAITING)
        write_fail_aborted(write, "its caller is gone");
    else
        write_abort(write, "its caller is gone");
}

void fs_write_stream(struct request *request, struct sandbox *sandbox)
{
    const struct fs_write_request *body = request_body(request);
    struct stream_write *write = calloc(1, sizeof(*write));
    struct sandbox_error err = { 0 };

    if (!write || loop_timer_new(sandbox_loop(sandbox), on_timer, write, &write->timer) < 0) {
        free(write);
        (void)sandbox_error_set(&err, S216, "%s: no memory", body->path);
        request_fail(request, &err);
        return;
    }
    write->request = request;
    write->body = body;
    write->visit = (struct fs_visit){
        .request = request,
        .path = body->path,
        .begin = on_begin,
        .failed = on_failed,
        .ctx = write,
    };
    request_on_cancel(request, on_cancel, write);
    fs_enter(&write->visit, sandbox);
}
