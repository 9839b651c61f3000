/* fs_read.c - the operation fs::read (contract 8.11): a channel that delivers the file, and its
 * text in the reply when it is short.
 *
 * The guest's bytes wait in `held`. A short file is taken to its end before the reply, because
 * its text goes into it; of any other only what the guest sends unasked is held until a reader
 * comes. After the reply the read lives on without its request. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "channel.h"
#include "fs.h"
#include "handlers.h"
#include "sandboxes.h"
#include "utf8.h"

#define BODY_BYTES (1024u * 1024) /* a file below this may go into the reply */
#define READER_SILENT_MS 30000u   /* contract 9.4 */

enum read_state {
    READ_OPENING,    /* for the sandbox, then for the guest's HEAD */
    READ_COLLECTING, /* a short file is taken to its end */
    READ_OFFERING,   /* the router makes the channel */
    READ_STREAMING,  /* replied; the reader takes what it wants */
    READ_STATE_MAX
};

struct fs_read {
    struct request *request; /* NULL in READ_STREAMING */
    struct adapter *adapter;
    char *path;
    struct fs_visit visit;
    enum read_state state;

    struct agent_call *call; /* NULL: not begun, or over */
    bool at_end;             /* the guest has sent its last byte */
    struct buf held;         /* what the channel has not taken; at READ_OFFERING the body */
    size_t held_sent;        /* of `held` */
    size_t ungranted;        /* bytes of `held` that the guest got no credit for */
    uint64_t size;           /* as of opening, like the next two */
    char mode[8];
    int64_t mtime;

    struct channel *channel;
    struct loop_timer *timer; /* the reader takes nothing */
    struct held_read unattached;
    struct sandbox_watch watch;
};

static void read_set_state(struct fs_read *read, enum read_state state)
{
    static const unsigned moves[] = {
        [READ_OPENING] = 1u << READ_COLLECTING | 1u << READ_OFFERING,
        [READ_COLLECTING] = 1u << READ_OFFERING,
        [READ_OFFERING] = 1u << READ_STREAMING,
        [READ_STREAMING] = 0,
    };
    static_assert(ARRAY_SIZE(moves) == READ_STATE_MAX, "moves of each state");

    assert(moves[read->state] & 1u << state);
    read->state = state;
}

static struct held_reads *held_reads(const struct fs_read *read)
{
    return sandboxes_held_reads(adapter_sandboxes(read->adapter));
}

static void read_free(struct fs_read *read)
{
    if (read->call)
        agent_call_abandon(read->call);
    held_read_leave(held_reads(read), &read->unattached);
    sandbox_watch_end(&read->watch);
    channel_free(read->channel);
    loop_timer_free(read->timer);
    buf_done(&read->held);
    fs_leave(&read->visit);
    free(read->path);
    free(read);
}

/* Failing: before the reply the request, after it the channel hears of it. */

static void read_fail(struct fs_read *read, struct sandbox_error *err)
{
    if (read->request)
        request_fail(read->request, err);
    else
        channel_abort(read->channel, err->code, err->message);
    read_free(read);
}

static void read_abort(struct fs_read *read, const char *reason)
{
    struct sandbox_error err = { 0 };

    (void)sandbox_error_set(&err, S218, "%s: the stream was aborted: %s", read->path, reason);
    read_fail(read, &err);
    sandbox_error_done(&err);
}

static void read_lost(struct fs_read *read, const char *reason)
{
    struct sandbox_error err = { 0 };

    if (!read->request) {
        read_abort(read, sandbox_lost_cause(read->visit.sandbox, reason));
        return;
    }
    (void)fs_set_lost(read->visit.sandbox, read->path, reason, &err);
    read_fail(read, &err);
    sandbox_error_done(&err);
}

/* Streaming. */

/* The timer runs while a reader that has come leaves bytes untaken. */
static void read_watch_reader(struct fs_read *read, bool progress)
{
    if (read->held_sent == read->held.size)
        loop_timer_disarm(read->timer);
    else if (progress || !loop_timer_armed(read->timer))
        loop_timer_arm(read->timer, READER_SILENT_MS);
}

static void read_grant(struct fs_read *read, size_t taken)
{
    size_t grant = taken < read->ungranted ? taken : read->ungranted;

    read->ungranted -= grant;
    if (read->call)
        agent_call_grant(read->call, 1, grant);
}

/* TAKEN bytes went to the reader; frees the read at its end. */
static void read_moved(struct fs_read *read, size_t taken)
{
    if (taken > 0)
        sandbox_touch(read->visit.sandbox);
    if (read->at_end && read->held.size == 0) {
        channel_end(read->channel);
        read_free(read);
        return;
    }
    read_watch_reader(read, taken > 0);
    read_grant(read, taken);
}

static void read_pump(struct fs_read *read)
{
    size_t left = read->held.size - read->held_sent;
    size_t taken = 0;

    if (left > 0)
        taken = channel_write(read->channel, read->held.data + read->held_sent, left);
    read->held_sent += taken;
    if (read->held_sent > read->held.size / 2) {
        buf_consume(&read->held, read->held_sent);
        read->held_sent = 0;
    }
    read_moved(read, taken);
}

/* From the guest to the reader without a stay, as far as it takes them. */
static void read_pass(struct fs_read *read, const uint8_t *data, size_t size)
{
    size_t taken = read->held.size == 0 ? channel_write(read->channel, data, size) : 0;

    read->ungranted += size;
    if (buf_append(&read->held, data + taken, size - taken) < 0)
        read_abort(read, "no memory");
    else
        read_moved(read, taken);
}

static bool read_attached(const struct fs_read *read)
{
    return list_empty(&read->unattached.node);
}

static void on_writable(void *ctx)
{
    struct fs_read *read = ctx;

    if (read->state != READ_STREAMING)
        return;
    held_read_leave(held_reads(read), &read->unattached);
    read_pump(read);
}

static void on_closed(void *ctx, bool clean, const char *reason)
{
    read_free(ctx); /* nobody is left to tell */
}

static void on_timer(void *ctx)
{
    read_abort(ctx, "the reader took nothing for 30 s");
}

static void on_gone(void *ctx, const char *why)
{
    read_lost(ctx, why);
}

static void on_drop(void *ctx)
{
    read_abort(ctx, "dropped: too many reads wait for their reader");
}

/* Replying. */

static bool body_fits(const struct fs_read *read)
{
    return read->at_end && read->size < BODY_BYTES && read->held.size < BODY_BYTES &&
           utf8_valid(read->held.data, read->held.size);
}

static void read_reply(struct fs_read *read, const struct channel_ref *reader)
{
    const char *body = body_fits(read) ? buf_text(&read->held) : NULL;
    struct fs_read_reply reply = {
        .content = *reader,
        .size = read->size,
        .mode = read->mode,
        .mtime = read->mtime,
        .has_body = body != NULL,
        .body = { .data = (char *)body, .size = read->held.size },
    };

    request_reply(take_ptr(read->request), &reply);
}

static void on_channel(void *ctx, const struct channel_ref *reader, struct sandbox_error *err)
{
    struct fs_read *read = ctx;
    bool wanted = !request_cancelled(read->request);

    if (err) {
        read_fail(read, err);
        return;
    }
    read_set_state(read, READ_STREAMING);
    read_reply(read, reader);
    if (!wanted) {
        read_free(read);
        return;
    }
    held_read_set(held_reads(read), &read->unattached, read->held.size);
}

static void read_offer(struct fs_read *read)
{
    static const struct channel_events events = {
        .writable = on_writable,
        .closed = on_closed,
    };
    struct sandbox_error err = { 0 };

    read_set_state(read, READ_OFFERING);
    sandbox_watch_begin(read->visit.sandbox, &read->watch);
    if (channel_create_writer(read->adapter, &events, read, on_channel, &read->channel, &err) <
        0)
        read_fail(read, &err);
    sandbox_error_done(&err);
}

/* The guest. */

static void on_head(void *ctx, const void *head)
{
    struct fs_read *read = ctx;
    const struct guest_fs_read_head *of_file = head;

    read->size = of_file->size;
    read->mtime = of_file->mtime;
    (void)snprintf(read->mode, sizeof(read->mode), "%s", of_file->mode);
    if (read->size < BODY_BYTES)
        read_set_state(read, READ_COLLECTING);
    else
        read_offer(read);
}

static void read_collected(struct fs_read *read, size_t size)
{
    if (read->held.size >= BODY_BYTES) {
        read->ungranted += size;
        read_offer(read);
    } else {
        agent_call_grant(read->call, 1, size);
    }
}

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct fs_read *read = ctx;

    if (read->state == READ_STREAMING && read_attached(read)) {
        read_pass(read, data, size);
        return;
    }
    if (buf_append(&read->held, data, size) < 0) {
        read_abort(read, "no memory");
        return;
    }
    if (read->state == READ_COLLECTING) {
        read_collected(read, size);
        return;
    }
    read->ungranted += size;
    if (read->state == READ_STREAMING)
        held_read_set(held_reads(read), &read->unattached, read->held.size);
}

/* An end that is no clean one is followed by the guest's ERROR, which says more. */
static void on_end(void *ctx, unsigned stream, const char *abort_reason)
{
    struct fs_read *read = ctx;

    if (abort_reason)
        return;
    read->at_end = true;
    if (read->state == READ_COLLECTING)
        read_offer(read);
    else if (read->state == READ_STREAMING && read_attached(read))
        read_pump(read);
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct fs_read *read = ctx;

    read->call = NULL;
    if (lost) {
        read_lost(read, err->message);
    } else if (err) {
        fs_map_error(read->path, err);
        read_fail(read, err);
    } else if (!read->at_end) {
        read_lost(read, "the guest agent ended the read before the end of the file");
    }
}

static void on_begin(void *ctx)
{
    static const struct agent_call_events events = {
        .head = on_head,
        .data = on_data,
        .end = on_end,
        .ended = on_ended,
    };
    struct fs_read *read = ctx;
    struct sandbox_error err = { 0 };

    if (sandbox_call(read->visit.sandbox, GUEST_fs_read, request_body(read->request), &events,
                     read, &read->call, &err) < 0)
        read_lost(read, err.message);
    sandbox_error_done(&err);
}

/* Nobody learns whether a read came to its end. Once the channel is asked for, that comes and
 * ends it. */
static void on_cancel(void *ctx)
{
    struct fs_read *read = ctx;

    if (read->state >= READ_OFFERING)
        return;
    fs_answer_nobody(take_ptr(read->request), read->path);
    read_free(read);
}

/* Beginning. */

static void on_failed(void *ctx, struct sandbox_error *err)
{
    read_fail(ctx, err);
}

static struct fs_read *read_new(struct request *request, const char *path)
{
    struct fs_read *read = calloc(1, sizeof(*read));

    if (!read)
        return NULL;
    read->request = request;
    read->adapter = request_adapter(request);
    held_read_init(&read->unattached, on_drop, read);
    sandbox_watch_init(&read->watch, on_gone, read);
    read->path = strdup(path);
    read->visit = (struct fs_visit){
        .request = request,
        .path = read->path,
        .begin = on_begin,
        .failed = on_failed,
        .ctx = read,
    };
    if (!read->path ||
        loop_timer_new(adapter_loop(read->adapter), on_timer, read, &read->timer) < 0) {
        read_free(read);
        return NULL;
    }
    return read;
}

void handle_fs_read(struct request *request)
{
    const struct fs_read_request *body = request_body(request);
    struct sandbox_error err = { 0 };
    struct sandbox *sandbox;
    struct fs_read *read = NULL;

    if (fs_find(request, body->sandbox_id, &sandbox, &err) == 0) {
        read = read_new(request, body->path);
        if (!read)
            (void)sandbox_error_set(&err, S216, "%s: no memory", body->path);
    }
    if (!read) {
        request_fail(request, &err);
        return;
    }
    request_on_cancel(request, on_cancel, read);
    fs_enter(&read->visit, sandbox);
}
