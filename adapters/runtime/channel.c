/* channel.c - see channel.h.
 *
 * The router holds the channel itself; this is one attachment to it, named by the id of its
 * OPEN. Windows count both ways: nothing is sent beyond the router's credit, and data beyond
 * ours ends the connection. */
#include "channel.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "json_scan.h"
#include "list.h"
#include "log.h"
#include "router_call.h"
#include "serve.h"
#include "table.h"

#define CHANNEL_WINDOW_MAX (1u << 30) /* a router that grants more is broken */
#define CHANNEL_REASON_MAX 512

enum channel_state {
    CHANNEL_CREATING, /* writer: engine::channels::create is under way */
    CHANNEL_OPEN,     /* attached, as far as we know: a refusal comes as CLOSE */
    CHANNEL_FAILING,  /* ended by the other side or the link; `closed` is still to be told */
    CHANNEL_OVER, /* `closed` was told, or the owner ended it: only channel_free() is left */
    CHANNEL_STATE_MAX
};

static const bool channel_moves[CHANNEL_STATE_MAX][CHANNEL_STATE_MAX] = {
    [CHANNEL_CREATING] = { [CHANNEL_OPEN] = true, [CHANNEL_OVER] = true },
    [CHANNEL_OPEN] = { [CHANNEL_FAILING] = true, [CHANNEL_OVER] = true },
    [CHANNEL_FAILING] = { [CHANNEL_OVER] = true },
};

struct channels {
    struct adapter *adapter;
    struct table *by_id;    /* in CHANNEL_OPEN */
    struct list unattached; /* writers in CHANNEL_OPEN without any credit yet, oldest first */
    size_t unattached_count;
};

struct channel {
    struct channels *channels;
    enum channel_state state;
    const struct channel_events *events;
    void *ctx;
    uint64_t id;   /* of the OPEN */
    uint64_t link; /* connection it lives on */
    bool is_writer;
    size_t window;     /* writer: what we may send; reader: what may come */
    size_t granted;    /* reader: collected, not told to the router yet */
    size_t grant_at;   /* reader: collected up to this, for each message wakes the router */
    bool wants_window; /* writer: the owner waits for `writable` */
    struct list node;  /* in `unattached` */

    struct router_call *creation; /* CHANNEL_CREATING */
    channel_ready_fn ready;       /* the same */

    struct loop_notice failure; /* deferred, in CHANNEL_FAILING */
    char reason[CHANNEL_REASON_MAX];
};

static void channel_set_state(struct channel *channel, enum channel_state state)
{
    assert(channel_moves[channel->state][state]);
    channel->state = state;
}

/* The table. */

int channels_new(struct adapter *adapter, struct channels **ret_channels)
{
    _cleanup_(channels_freep)
    struct channels *channels = calloc(1, sizeof(*channels));
    int ret;

    if (!channels)
        return -ENOMEM;
    channels->adapter = adapter;
    list_init(&channels->unattached);
    ret = table_new(&channels->by_id);
    if (ret < 0)
        return ret;
    *ret_channels = take_ptr(channels);
    return 0;
}

void channels_free(struct channels *channels)
{
    if (!channels)
        return;
    table_free(channels->by_id); /* the channels belong to their operations */
    free(channels);
}

static void channel_attached(struct channel *channel)
{
    if (list_empty(&channel->node))
        return;
    list_remove(&channel->node);
    channel->channels->unattached_count--;
}

/* Out of the table: nothing of the router reaches it any more. */
static void channel_detach(struct channel *channel)
{
    channel_attached(channel);
    (void)table_remove(channel->channels->by_id, channel->id); /* the channel itself */
}

/* Ending. */

static void channel_tell_closed(struct channel *channel, bool clean, const char *reason)
{
    channel_set_state(channel, CHANNEL_OVER);
    channel->events->closed(channel->ctx, clean, reason);
}

static void on_failure(void *ctx)
{
    struct channel *channel = ctx;

    channel_tell_closed(channel, false, channel->reason);
}

/* For ends that are noticed inside a call of the owner, who must not be called back there. */
static void channel_fail_soon(struct channel *channel, const char *reason)
{
    channel_detach(channel);
    channel_set_state(channel, CHANNEL_FAILING);
    (void)snprintf(channel->reason, sizeof(channel->reason), "%s", reason); /* cut is fine */
    loop_defer(adapter_loop(channel->channels->adapter), &channel->failure);
}

static void channel_send_close(struct channel *channel, const char *code, const char *reason)
{
    struct envelope close = { .kind = ENVELOPE_CLOSE, .id = channel->id };

    if (code) {
        close.code = span_of_text(code);
        close.message = span_of_text(reason);
    }
    /* If it cannot be sent the connection is gone, which closes the channel as well. */
    (void)serve_send(adapter_serve(channel->channels->adapter), channel->link, &close);
}

void channel_end(struct channel *channel)
{
    assert(channel->is_writer);
    if (channel->state != CHANNEL_OPEN)
        return;
    channel_send_close(channel, NULL, NULL);
    channel_detach(channel);
    channel_set_state(channel, CHANNEL_OVER);
}

void channel_abort(struct channel *channel, enum sandbox_code code, const char *reason)
{
    if (channel->state == CHANNEL_OPEN) {
        channel_send_close(channel, error_info_get(code)->code, reason);
        channel_detach(channel);
    }
    loop_notice_cancel(adapter_loop(channel->channels->adapter), &channel->failure);
    router_call_forget(take_ptr(channel->creation));
    if (channel->state != CHANNEL_OVER)
        channel_set_state(channel, CHANNEL_OVER);
}

void channel_free(struct channel *channel)
{
    if (!channel)
        return;
    channel_abort(channel, S218, "abandoned");
    free(channel);
}

/* Beginning. */

static struct channel *channel_new(struct channels *channels, bool is_writer,
                                   const struct channel_events *events, void *ctx)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    if (!channel)
        return NULL;
    *channel = (struct channel){ .channels = channels,
                                 .state = is_writer ? CHANNEL_CREATING : CHANNEL_OPEN,
                                 .events = events,
                                 .ctx = ctx,
                                 .link = serve_link(adapter_serve(channels->adapter)),
                                 .is_writer = is_writer,
                                 .wants_window = is_writer };
    list_init(&channel->node);
    loop_notice_init(&channel->failure, on_failure, channel);
    return channel;
}

/* Sends OPEN; 0 or -errno. */
static int channel_attach(struct channel *channel, struct span channel_id,
                          struct span access_key)
{
    struct channels *channels = channel->channels;
    struct serve *serve = adapter_serve(channels->adapter);
    int ret;

    channel->id = serve_next_id(serve);
    ret = table_put(channels->by_id, channel->id, channel);
    if (ret < 0)
        return ret;
    ret = serve_send(serve, channel->link,
                     &(struct envelope){ .kind = ENVELOPE_OPEN,
                                         .id = channel->id,
                                         .channel_id = channel_id,
                                         .access_key = access_key,
                                         .write = channel->is_writer });
    if (ret < 0)
        (void)table_remove(channels->by_id, channel->id); /* the channel itself */
    return ret;
}

int channel_open_reader(struct adapter *adapter, const struct channel_ref *ref,
                        const struct channel_events *events, void *ctx,
                        struct channel **ret_channel, struct sandbox_error *err)
{
    struct channel *channel = channel_new(adapter_channels(adapter), false, events, ctx);
    int ret;

    if (!channel)
        return sandbox_error_set(err, S218, "no memory for a channel");
    channel->window = serve_first_window(adapter_serve(adapter));
    channel->grant_at = channel->window / 2;
    ret = channel_attach(channel, span_of_text(ref->channel_id), span_of_text(ref->access_key));
    if (ret < 0)
        channel_fail_soon(channel, strerror(-ret));
    *ret_channel = channel;
    return 0;
}

/* Making a channel. */

/* The oldest read that nobody came for makes room (contract 9.3). */
static void channels_limit_unattached(struct channels *channels)
{
    struct channel *oldest;

    if (channels->unattached_count <= CHANNELS_UNATTACHED_MAX)
        return;
    oldest = LIST_ENTRY(channels->unattached.next, struct channel, node);
    log_event(LOG_INFO, "channel_dropped", log_uint("unattached", channels->unattached_count));
    channel_send_close(oldest, "S218", "dropped: too many reads wait for their reader");
    channel_fail_soon(oldest, "dropped: too many reads wait for their reader");
}

struct new_channel {
    struct buf id, writer_key, reader_key;
};

static int decode_member(struct span object, const char *name, struct buf *to)
{
    return json_string_decode(json_get(object, name), to) < 0 || !buf_text(to) ? -1 : 0;
}

static int decode_new_channel(const struct span *reply, struct new_channel *ret)
{
    struct span object, writer, reader;

    if (json_scan(reply->data, reply->size, &object, NULL) < 0 ||
        json_kind(object) != JSON_OBJECT)
        return -1;
    writer = json_get(object, "writer");
    reader = json_get(object, "reader");
    if (!writer.data || json_kind(writer) != JSON_OBJECT || !reader.data ||
        json_kind(reader) != JSON_OBJECT)
        return -1;
    if (decode_member(writer, "channel_id", &ret->id) < 0 ||
        decode_member(writer, "access_key", &ret->writer_key) < 0)
        return -1;
    return decode_member(reader, "access_key", &ret->reader_key);
}

static void channel_refuse(struct channel *channel, const char *why)
{
    channel_ready_fn ready = take_ptr(channel->ready);
    struct sandbox_error err = { 0 };

    channel_set_state(channel, CHANNEL_OVER);
    sandbox_error_set(&err, S216, "the router made no channel: %s", why);
    ready(channel->ctx, NULL, &err);
    sandbox_error_done(&err);
}

static void channel_created(struct channel *channel, const struct new_channel *made)
{
    struct channel_ref reader = { .channel_id = (char *)made->id.data,
                                  .access_key = (char *)made->reader_key.data,
                                  .direction = "read" };
    struct span id = span_of_text(reader.channel_id);
    struct span key = span_of_text((const char *)made->writer_key.data);
    channel_ready_fn ready;
    int ret = channel_attach(channel, id, key);

    if (ret < 0) {
        channel_refuse(channel, strerror(-ret));
        return;
    }
    channel_set_state(channel, CHANNEL_OPEN);
    list_append(&channel->channels->unattached, &channel->node);
    channel->channels->unattached_count++;
    channels_limit_unattached(channel->channels);
    ready = take_ptr(channel->ready);
    ready(channel->ctx, &reader, NULL);
}

static void on_created(void *ctx, const struct span *reply, const struct span *error)
{
    struct channel *channel = ctx;
    struct new_channel made = { 0 };

    channel->creation = NULL;
    if (reply && decode_new_channel(reply, &made) == 0)
        channel_created(channel, &made);
    else
        channel_refuse(channel, error   ? "it answered with an error"
                                : reply ? "it answered something else"
                                        : "the connection to it was lost");
    buf_done(&made.id);
    buf_done(&made.writer_key);
    buf_done(&made.reader_key);
}

int channel_create_writer(struct adapter *adapter, const struct channel_events *events,
                          void *ctx, channel_ready_fn ready, struct channel **ret_channel,
                          struct sandbox_error *err)
{
    struct channel *channel = channel_new(adapter_channels(adapter), true, events, ctx);
    int ret = -ENOMEM;

    if (channel) {
        channel->ready = ready;
        ret = router_call(adapter, "engine::channels::create", "{}", on_created, channel,
                          &channel->creation);
    }
    if (ret < 0) {
        free(channel);
        return sandbox_error_set(err, S216, "the router made no channel: %s", strerror(-ret));
    }
    *ret_channel = channel;
    return 0;
}

/* Data. */

void channel_grant(struct channel *channel, size_t size)
{
    assert(!channel->is_writer);
    if (channel->state != CHANNEL_OPEN)
        return;
    channel->granted += size;
    if (channel->granted < channel->grant_at)
        return;
    channel->window += channel->granted;
    (void)serve_send(adapter_serve(channel->channels->adapter), channel->link,
                     &(struct envelope){ .kind = ENVELOPE_CREDIT,
                                         .id = channel->id,
                                         .credit = channel->granted });
    channel->granted = 0; /* if it was not sent, the connection is gone */
}

size_t channel_window(const struct channel *channel)
{
    return channel->state == CHANNEL_OPEN && channel->is_writer ? channel->window : 0;
}

size_t channel_write(struct channel *channel, const uint8_t *data, size_t size)
{
    struct serve *serve = adapter_serve(channel->channels->adapter);
    size_t taken = 0;

    assert(channel->is_writer);
    while (taken < size && channel_window(channel) > 0) {
        size_t part = size - taken;

        if (part > channel->window)
            part = channel->window;
        if (part > ENVELOPE_DATA_MAX_BYTES)
            part = ENVELOPE_DATA_MAX_BYTES;
        if (serve_send_body(serve, channel->link, ENVELOPE_DATA, channel->id, data + taken,
                            part) < 0)
            break; /* the connection is gone: `closed` follows */
        channel->window -= part;
        taken += part;
    }
    if (taken < size)
        channel->wants_window = true;
    return taken;
}

static int channel_take_data(struct channel *channel, const struct span *data)
{
    if (channel->is_writer || data->size > channel->window)
        return -EPROTO;
    channel->window -= data->size;
    channel->events->data(channel->ctx, (const uint8_t *)data->data, data->size);
    return 0;
}

static int channel_take_credit(struct channel *channel, uint64_t credit)
{
    if (!channel->is_writer || credit > CHANNEL_WINDOW_MAX ||
        channel->window + credit > CHANNEL_WINDOW_MAX)
        return -EPROTO;
    channel->window += credit;
    channel_attached(channel);
    if (channel->window > 0 && channel->wants_window) {
        channel->wants_window = false;
        channel->events->writable(channel->ctx);
    }
    return 0;
}

static void channel_take_close(struct channel *channel, const struct envelope *close)
{
    bool clean = !close->code.data && !channel->is_writer;
    int size = close->message.size < CHANNEL_REASON_MAX ? (int)close->message.size
                                                        : CHANNEL_REASON_MAX - 1;

    channel_detach(channel);
    channel_set_state(channel, CHANNEL_FAILING);
    (void)snprintf(channel->reason, sizeof(channel->reason), "%.*s", size,
                   size > 0 ? close->message.data : "");
    if (!clean && size == 0)
        (void)snprintf(channel->reason, sizeof(channel->reason), "closed by the other end");
    channel_tell_closed(channel, clean, clean ? NULL : channel->reason);
}

int channels_message(struct channels *channels, const struct envelope *message)
{
    struct channel *channel = table_get(channels->by_id, message->id);

    if (!channel)
        return 0; /* crossed our own CLOSE */
    switch (message->kind) {
    case ENVELOPE_DATA:
        return channel_take_data(channel, &message->body);
    case ENVELOPE_CREDIT:
        return channel_take_credit(channel, message->credit);
    default:
        channel_take_close(channel, message);
        return 0;
    }
}

void channels_link_lost(struct channels *channels)
{
    struct channel *channel;

    for (size_t cursor = 0; (channel = table_next(channels->by_id, &cursor));)
        channel_fail_soon(channel, "the connection to the router was lost");
}
