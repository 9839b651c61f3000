/* native_stream.c - see native_stream.h. */
#include "native_stream.h"

#include <assert.h>
#include <errno.h>

#include "native_peer_state.h"
#include "router_limits.h"

/* Towards a peer whose out-queue is longer than this no stream is opened further; `drained`
 * comes for every queue that was. */
#define QUEUE_ENOUGH_BYTES STREAM_HIGH_WATER_BYTES

struct native_stream {
    struct native_streams *owner;
    struct channel_end *end;
    uint64_t id;
    bool is_writer; /* the peer writes */
    /* The peer reads: what it granted and we have not passed on, and what we have, unused. */
    uint64_t credit;
    uint64_t open;
};

static void stream_forget(struct native_stream *stream)
{
    (void)table_remove(stream->owner->by_id, stream->id);
    free(stream);
}

static struct native_peer *peer_of(struct native_streams *streams)
{
    return CONTAINER_OF(streams, struct native_peer, streams);
}

static void break_rules(struct native_streams *streams, const char *reason)
{
    link_break(peer_of(streams)->link, reason);
}

static void send_close(struct native_streams *streams, uint64_t id, struct span code,
                       struct span message)
{
    struct envelope close = {
        .kind = ENVELOPE_CLOSE, .id = id, .code = code, .message = message
    };

    native_peer_send(peer_of(streams), &close);
}

/* From the channel. */

/* A peer may grant without end and read nothing of its socket: what we pass on is no more than
 * a window at a time, and nothing while much is queued for it. May end the stream. */
static void pass_credit(struct native_stream *stream)
{
    uint64_t bytes = ENVELOPE_WINDOW_BYTES - stream->open;

    if (link_queued_bytes(peer_of(stream->owner)->link) > QUEUE_ENOUGH_BYTES)
        return;
    if (bytes > stream->credit)
        bytes = stream->credit;
    if (bytes == 0)
        return;
    stream->credit -= bytes;
    stream->open += bytes;
    channel_grant(stream->end, bytes);
}

static void add_credit(struct native_stream *stream, uint64_t bytes)
{
    if (__builtin_add_overflow(stream->credit, bytes, &stream->credit))
        stream->credit = UINT64_MAX;
    pass_credit(stream);
}

static void on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct native_stream *stream = ctx;

    native_peer_send_body(peer_of(stream->owner), ENVELOPE_DATA, stream->id,
                          (struct span){ .data = (const char *)data, .size = size });
    stream->open -= size;
    pass_credit(stream);
}

static void on_grant(void *ctx, uint64_t bytes)
{
    struct native_stream *stream = ctx;
    struct envelope credit = { .kind = ENVELOPE_CREDIT, .id = stream->id, .credit = bytes };

    native_peer_send(peer_of(stream->owner), &credit);
}

static void on_closed(void *ctx, const struct channel_reason *reason)
{
    struct native_stream *stream = ctx;

    send_close(stream->owner, stream->id, reason->code, reason->message);
    stream_forget(stream);
}

/* Messages beside the data are no part of a native stream. */
static const struct channel_events stream_events = {
    .data = on_data,
    .grant = on_grant,
    .closed = on_closed,
};

/* From the peer. */

static int stream_attach(struct native_stream *stream, const struct envelope *open)
{
    struct channel_attach attach = {
        .channel_id = open->channel_id,
        .access_key = open->access_key,
        .direction = open->write ? CHANNEL_WRITE : CHANNEL_READ,
        .windowed = true,
        .events = &stream_events,
        .ctx = stream,
    };
    int result = table_put(stream->owner->by_id, stream->id, stream);

    if (result == 0) {
        result = channel_attach(native_peer_router(peer_of(stream->owner))->channels, &attach,
                                &stream->end);
        if (result < 0)
            (void)table_remove(stream->owner->by_id, stream->id);
    }
    return result;
}

static void handle_open(struct native_streams *streams, const struct envelope *open)
{
    struct native_stream *stream;
    int result = -ENOMEM;

    if (table_get(streams->by_id, open->id)) {
        break_rules(streams, "the id of an open stream was opened again");
        return;
    }
    if (open->id > streams->highest_id)
        streams->highest_id = open->id;
    stream = table_count(streams->by_id) < CONNECTION_STREAMS_MAX ? calloc(1, sizeof(*stream))
                                                                  : NULL;
    if (stream) {
        *stream = (struct native_stream){ .owner = streams,
                                          .id = open->id,
                                          .is_writer = open->write };
        result = stream_attach(stream, open);
    }
    if (result < 0) {
        free(stream);
        /* Unknown, taken, expired and a wrong key look the same (contract 9.3). */
        send_close(streams, open->id, span_of_text("S218"),
                   span_of_text("no such channel, or its end is taken"));
    } else if (!open->write) {
        add_credit(stream, ENVELOPE_WINDOW_BYTES); /* the first window */
    }
}

static void handle_data(struct native_stream *stream, const struct envelope *data)
{
    struct native_streams *streams = stream->owner;
    struct channel_end *end = stream->end;
    int result;

    if (!stream->is_writer) {
        break_rules(streams, "DATA on a stream that the peer reads");
        return;
    }
    result = channel_write(end, (const uint8_t *)data->body.data, data->body.size);
    if (result == -EMSGSIZE)
        break_rules(streams, "DATA beyond the granted window");
    else if (result < 0)
        break_rules(streams, "no memory for DATA");
}

static void handle_credit(struct native_stream *stream, const struct envelope *credit)
{
    if (stream->is_writer)
        break_rules(stream->owner, "CREDIT on a stream that the peer writes");
    else
        add_credit(stream, credit->credit);
}

static void handle_close(struct native_stream *stream, const struct envelope *close)
{
    struct channel_end *end = stream->end;
    bool is_writer = stream->is_writer;

    stream_forget(stream);
    if (close->code.data)
        channel_abort(end, close->code, close->message);
    else if (is_writer)
        channel_finish(end);
    else
        channel_leave(end);
}

void native_streams_message(struct native_streams *streams, const struct envelope *envelope)
{
    struct native_stream *stream;

    if (envelope->kind == ENVELOPE_OPEN) {
        handle_open(streams, envelope);
        return;
    }
    stream = table_get(streams->by_id, envelope->id);
    if (!stream) {
        /* We may have closed it while this was under way. */
        if (envelope->id > streams->highest_id)
            break_rules(streams, "a message for a stream that was never opened");
        return;
    }
    if (envelope->kind == ENVELOPE_DATA)
        handle_data(stream, envelope);
    else if (envelope->kind == ENVELOPE_CREDIT)
        handle_credit(stream, envelope);
    else
        handle_close(stream, envelope);
}

void native_streams_drained(struct native_streams *streams)
{
    struct native_stream *stream;

    for (size_t cursor = 0; (stream = table_next(streams->by_id, &cursor)) != NULL;) {
        if (!stream->is_writer)
            pass_credit(stream);
    }
}

int native_streams_init(struct native_streams *streams)
{
    return table_new(&streams->by_id);
}

void native_streams_done(struct native_streams *streams)
{
    struct native_stream *stream;

    if (!streams->by_id)
        return;
    /* Leaving one may close another: each look starts anew. */
    for (size_t cursor = 0; (stream = table_next(streams->by_id, &cursor)) != NULL;
         cursor = 0) {
        struct channel_end *end = stream->end;

        stream_forget(stream);
        channel_leave(end);
    }
    table_free(take_ptr(streams->by_id));
}
