/* web_channel.c - see web_channel.h. The client's writer is the channel's writer.
 *
 * Two ends meet here, and each hears of the other's end: the channel's by `closed`, the
 * socket's by `gone`. Whichever comes first lets go of the other side, so that neither hears
 * twice. */
#include "web_channel.h"

#include <errno.h>

#include "error.h"
#include "log.h"

struct web_channel {
    struct web_connection *connection;
    struct channel_end *end; /* NULL: detached */
    bool writes;
    uint64_t granted; /* reader: what the channel may still give us */
};

static void fail_writer(struct web_channel *self, int error)
{
    static const char too_much[] = "the writer sent on in spite of a full channel";
    static const char no_memory[] = "the router is out of memory";
    const char *message = error == -EMSGSIZE ? too_much : no_memory;

    channel_abort(take_ptr(self->end), (struct span){ 0 }, span_of_text(message));
    web_connection_close(self->connection, WEBSOCKET_CLOSE_INTERNAL, message,
                         WEB_CLOSE_WAIT_MS);
}

/* From the client. */

static void on_message(void *ctx, bool is_text, const uint8_t *data, size_t size)
{
    struct web_channel *self = ctx;
    int result;

    if (!self->end || !self->writes)
        return; /* a reader has nothing to say */
    result = is_text ? channel_write_text(self->end, data, size)
                     : channel_write(self->end, data, size);
    if (result < 0)
        fail_writer(self, result);
    else if (result > 0)
        web_connection_pause(self->connection);
}

static void on_gone(void *ctx, unsigned code)
{
    struct web_channel *self = ctx;
    struct channel_end *end = take_ptr(self->end);
    bool clean = code == WEBSOCKET_CLOSE_NORMAL || code == WEBSOCKET_CLOSE_NONE;

    if (end && self->writes && clean)
        channel_finish(end);
    else if (end)
        channel_leave(end);
    free(self);
}

/* To the client. */

/* Grants what the socket has room for. */
static void ask_for_more(struct web_channel *self)
{
    uint64_t wanted = WEB_READER_WINDOW_BYTES - self->granted;

    if (!self->end || self->writes || wanted == 0 || web_connection_is_full(self->connection))
        return;
    self->granted = WEB_READER_WINDOW_BYTES;
    channel_grant(self->end, wanted);
}

static void on_drained(void *ctx)
{
    ask_for_more(ctx);
}

static void on_channel_data(void *ctx, const uint8_t *data, size_t size)
{
    struct web_channel *self = ctx;
    struct span part = { .data = (const char *)data, .size = size };

    self->granted -= size < self->granted ? size : self->granted;
    web_connection_send(self->connection, WEBSOCKET_BINARY, &part, 1);
    if (self->granted <= WEB_READER_WINDOW_BYTES / 2)
        ask_for_more(self);
}

static void on_channel_text(void *ctx, const uint8_t *text, size_t size)
{
    struct web_channel *self = ctx;
    struct span part = { .data = (const char *)text, .size = size };

    web_connection_send(self->connection, WEBSOCKET_TEXT, &part, 1);
}

static void on_channel_grant(void *ctx, uint64_t bytes)
{
    struct web_channel *self = ctx;

    web_connection_resume(self->connection);
}

/* The reader is told why before the close frame: {"error":"S218: …"}. */
static void send_reason(struct web_channel *self, const struct channel_reason *reason)
{
    _cleanup_(buf_done)
    struct buf text = { 0 }, json = { 0 };
    struct span part;
    int result = buf_append(&text, reason->code.data, reason->code.size);

    if (result == 0)
        result = buf_append_text(&text, ": ");
    if (result == 0)
        result = buf_append(&text, reason->message.data, reason->message.size);
    if (result == 0)
        result = buf_append_text(&json, "{\"error\":");
    if (result == 0)
        result = json_append_string(&json, (const char *)text.data, text.size);
    if (result == 0)
        result = buf_append_byte(&json, '}');
    part = (struct span){ .data = (const char *)json.data, .size = json.size };
    if (result == 0)
        web_connection_send(self->connection, WEBSOCKET_TEXT, &part, 1);
}

/* A reader that is slow to take the last bytes gets the time that a moving channel has. */
static void on_channel_closed(void *ctx, const struct channel_reason *reason)
{
    struct web_channel *self = ctx;

    self->end = NULL;
    if (reason->close == CHANNEL_CLOSE_CLEAN) {
        web_connection_close(self->connection, WEBSOCKET_CLOSE_NORMAL, "", CHANNEL_STALL_MS);
        return;
    }
    if (!self->writes)
        send_reason(self, reason);
    web_connection_close(self->connection, WEBSOCKET_CLOSE_INTERNAL, "channel aborted",
                         self->writes ? WEB_CLOSE_WAIT_MS : CHANNEL_STALL_MS);
}

/* Making. */

static const struct channel_events channel_events = {
    .data = on_channel_data,
    .text = on_channel_text,
    .grant = on_channel_grant,
    .closed = on_channel_closed,
};

/* A paused reader answers no ping, rightly. */
static const struct web_role channel_role = {
    .name = "channel",
    .max_message_bytes = WEB_CHANNEL_MESSAGE_MAX_BYTES,
    .message = on_message,
    .drained = on_drained,
    .gone = on_gone,
};

static int attach(struct web_channel *self, struct channel_set *channels,
                  const struct web_request *request)
{
    struct channel_attach attach = {
        .channel_id = request->channel_id,
        .access_key = { (const char *)request->access_key.data, request->access_key.size },
        .direction = request->writes ? CHANNEL_WRITE : CHANNEL_READ,
        .whole_messages = true,
        .events = &channel_events,
        .ctx = self,
    };

    return channel_attach(channels, &attach, &self->end);
}

int web_channel_accept(struct channel_set *channels, struct web_connection *connection,
                       const struct web_request *request)
{
    struct web_channel *self = calloc(1, sizeof(*self));
    int result = self ? 0 : -ENOMEM;

    if (result == 0) {
        self->connection = connection;
        self->writes = request->writes;
        result = attach(self, channels, request);
    }
    if (result < 0 && result != -EBUSY) {
        free(self);
        return result;
    }
    if (!web_connection_upgrade(connection, request->key, &channel_role, self)) {
        on_gone(self, WEB_CODE_LOST);
        return 0;
    }
    if (result == -EBUSY)
        web_connection_close(connection, WEBSOCKET_CLOSE_POLICY, "this end was taken before",
                             WEB_CLOSE_WAIT_MS);
    else
        ask_for_more(self);
    return 0;
}
