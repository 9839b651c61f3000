/* native_client.c - see native_client.h. Calls and streams share one id space and one list
 * each. */

#include "native_client.h"

#include <errno.h>
#include <string.h>

#include "sp.h"

#define PONG_TIMEOUT_MS 30000u

struct native_client {
    struct loop *loop;
    bool shares_loop; /* it is somebody else's */
    struct stream_dialer *dialer;
    struct stream_listener *listener; /* plays the router */
    struct sp *sp;
    struct loop_timer *deadline;
    struct native_call *calls;
    struct native_stream *streams;
    uint64_t next_id;
    native_message_fn on_call;
    void *on_call_ctx;
    bool answered;
    bool ponged;
    bool refused;
    bool lost;
    bool timed_out;
};

struct native_call {
    struct native_client *client;
    struct native_call *next;
    uint64_t id;
    bool done;
    bool ok;
    struct buf body;
    struct buf *events;
    size_t event_count;
};

struct native_stream {
    struct native_client *client;
    struct native_stream *next;
    uint64_t id;
    bool write;
    bool ended;
    bool aborted;
    uint64_t credit;
    struct buf incoming;
    size_t read;    /* of `incoming` */
    size_t granted; /* read, but not told yet */
    char code[8];
    char reason[256];
};

static int client_send(struct native_client *client, const struct envelope *message)
{
    _cleanup_(buf_done)
    struct buf bytes = { 0 };
    if (client->lost)
        return -EPIPE;
    int ret = envelope_encode(message, &bytes);
    return ret < 0 ? ret : sp_send(client->sp, bytes.data, bytes.size);
}

static struct native_call *call_find(struct native_client *client, uint64_t id)
{
    struct native_call *call = client->calls;
    while (call && call->id != id)
        call = call->next;
    return call;
}

static struct native_stream *stream_find(struct native_client *client, uint64_t id)
{
    struct native_stream *stream = client->streams;
    while (stream && stream->id != id)
        stream = stream->next;
    return stream;
}

static void copy_text(char *to, size_t size, struct span from)
{
    if (from.size >= size)
        from.size = size - 1;
    if (from.size > 0)
        memcpy(to, from.data, from.size);
    to[from.size] = '\0';
}

static void stream_break(struct native_stream *stream, struct span code, struct span reason)
{
    stream->ended = true;
    stream->aborted = true;
    copy_text(stream->code, sizeof(stream->code), code);
    copy_text(stream->reason, sizeof(stream->reason), reason);
}

static void on_call_message(struct native_client *client, const struct envelope *message)
{
    struct native_call *call = call_find(client, message->id);
    if (!call || call->done)
        return;
    if (message->kind == ENVELOPE_EVENT) {
        struct buf *events = realloc(call->events, (call->event_count + 1) * sizeof(*events));
        if (!events)
            return;
        call->events = events;
        events[call->event_count] = (struct buf){ 0 };
        if (buf_append(&events[call->event_count], message->body.data, message->body.size) == 0)
            call->event_count++;
        return;
    }
    call->done = true;
    call->ok = message->kind == ENVELOPE_REPLY;
    (void)buf_append(&call->body, message->body.data, message->body.size); /* test memory */
}

static void on_stream_message(struct native_client *client, const struct envelope *message)
{
    struct native_stream *stream = stream_find(client, message->id);
    if (!stream)
        return;
    if (message->kind == ENVELOPE_DATA)
        (void)buf_append(&stream->incoming, message->body.data, message->body.size);
    else if (message->kind == ENVELOPE_CREDIT)
        stream->credit += message->credit;
    else if (message->code.data)
        stream_break(stream, message->code, message->message);
    else
        stream->ended = true;
}

static void welcome_adapter(struct native_client *client)
{
    static const char docs_base[] = "https://example.invalid/#";
    (void)client_send(client, &(struct envelope){
                                  .kind = ENVELOPE_WELCOME,
                                  .version = { "0", 1 },
                                  .has_contract = true,
                                  .contract = { CONTRACT_MAJOR, CONTRACT_MINOR },
                                  .docs_base = { docs_base, sizeof(docs_base) - 1 },
                                  .max_message_bytes = 16u * 1024 * 1024,
                                  .credit = ENVELOPE_WINDOW_BYTES,
                              }); /* a lost link shows in the wait */
}

static void on_message(void *ctx, uint8_t *data, size_t size)
{
    struct native_client *client = ctx;
    struct envelope message;
    const char *reason = NULL;
    if (envelope_decode(data, size, &message, &reason) < 0)
        return;
    switch (message.kind) {
    case ENVELOPE_HELLO:
        welcome_adapter(client);
        client->answered = true;
        break;
    case ENVELOPE_WELCOME:
    case ENVELOPE_REFUSED:
        client->answered = true;
        client->refused = message.kind == ENVELOPE_REFUSED;
        break;
    case ENVELOPE_CALL:
    case ENVELOPE_CANCEL:
        if (client->on_call)
            client->on_call(client->on_call_ctx, client, &message);
        break;
    case ENVELOPE_REPLY:
    case ENVELOPE_ERROR:
    case ENVELOPE_EVENT:
        on_call_message(client, &message);
        break;
    case ENVELOPE_DATA:
    case ENVELOPE_CREDIT:
    case ENVELOPE_CLOSE:
        on_stream_message(client, &message);
        break;
    case ENVELOPE_PING:
        (void)client_send(client,
                          &(struct envelope){ .kind = ENVELOPE_PONG, .id = message.id });
        break;
    case ENVELOPE_PONG:
        client->ponged = true;
        break;
    default:
        break;
    }
}

static void on_closed(void *ctx, int error, const char *reason)
{
    struct native_client *client = ctx;
    client->lost = true;
    for (struct native_stream *stream = client->streams; stream; stream = stream->next) {
        if (!stream->ended)
            stream_break(stream, (struct span){ 0 }, span_of_text(reason));
    }
}

static const struct sp_events client_events = { .message = on_message, .closed = on_closed };

static void on_dialed(void *ctx, int error, struct stream *own_stream)
{
    struct native_client *client = ctx;
    if (error < 0 || sp_new(client->loop, own_stream, SP_MAPPING_IPC, 300u * 1024 * 1024, 10000,
                            &client_events, client, &client->sp) < 0)
        client->lost = true;
}

static void on_deadline(void *ctx)
{
    struct native_client *client = ctx;
    client->timed_out = true;
}

/* Turns the loop until *FLAG, the end of the link, or the deadline. */
static int wait_for(struct native_client *client, const bool *flag, uint32_t timeout_ms)
{
    client->timed_out = false;
    loop_timer_arm(client->deadline, timeout_ms);
    while (!*flag && !client->lost && !client->timed_out)
        (void)loop_turn(client->loop, -1);
    loop_timer_disarm(client->deadline);
    if (*flag)
        return 0;
    return client->lost ? -EPIPE : -ETIMEDOUT;
}

static int client_dial(struct native_client *client, const char *url, uint32_t timeout_ms)
{
    client->next_id = 1;
    int ret = client->loop ? 0 : loop_new(&client->loop);
    if (ret == 0)
        ret = loop_timer_new(client->loop, on_deadline, client, &client->deadline);
    if (ret == 0)
        ret = stream_dial(client->loop, url, NULL, timeout_ms, on_dialed, client,
                          &client->dialer);
    while (ret == 0 && !client->sp && !client->lost)
        ret = loop_turn(client->loop, -1) < 0 ? -EIO : 0;
    return ret == 0 && !client->sp ? -ECONNREFUSED : ret;
}

int native_client_new_with(const char *url, const struct native_client_options *options,
                           uint32_t timeout_ms, struct native_client **ret_client)
{
    _cleanup_(native_client_freep)
    struct native_client *client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    client->loop = options->loop;
    client->shares_loop = options->loop != NULL;
    client->on_call = options->on_call;
    client->on_call_ctx = options->ctx;
    int ret = client_dial(client, url, timeout_ms);
    if (ret == 0)
        ret = client_send(client, options->hello);
    if (ret == 0)
        ret = wait_for(client, &client->answered, timeout_ms);
    if (ret < 0)
        return ret;
    *ret_client = take_ptr(client);
    return 0;
}

const struct envelope native_caller_hello = {
    .kind = ENVELOPE_HELLO,
    .role = { "caller", 6 },
    .name = { "test", 4 },
    .version = { "0", 1 },
    .instance = { "0", 1 },
    .has_contract = true,
    .contract = { CONTRACT_MAJOR, CONTRACT_MINOR },
};

int native_client_new(const char *url, uint32_t timeout_ms, struct native_client **ret_client)
{
    const struct native_client_options options = { .hello = &native_caller_hello };
    return native_client_new_with(url, &options, timeout_ms, ret_client);
}

int native_client_new_misfit(const char *url, const char *name,
                             struct contract_version contract, uint32_t timeout_ms,
                             struct native_client **ret_client)
{
    const struct envelope hello = {
        .kind = ENVELOPE_HELLO,
        .role = { "adapter", 7 },
        .name = { name, strlen(name) },
        .version = { "0", 1 },
        .instance = { "0", 1 },
        .has_contract = true,
        .contract = contract,
    };
    const struct native_client_options options = { .hello = &hello };
    return native_client_new_with(url, &options, timeout_ms, ret_client);
}

static void on_accepted(void *ctx, struct stream *own_stream)
{
    struct native_client *client = ctx;
    if (client->sp) {
        stream_free(own_stream);
        return;
    }
    on_dialed(client, 0, own_stream);
}

int native_client_new_router(const char *url, struct native_client **ret_client)
{
    _cleanup_(native_client_freep)
    struct native_client *client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    client->next_id = 1;
    int ret = loop_new(&client->loop);
    if (ret == 0)
        ret = loop_timer_new(client->loop, on_deadline, client, &client->deadline);
    if (ret == 0)
        ret = stream_listen(client->loop, url, NULL, on_accepted, client, &client->listener);
    if (ret < 0)
        return ret;
    *ret_client = take_ptr(client);
    return 0;
}

int native_client_wait_adapter(struct native_client *client, uint32_t timeout_ms)
{
    return wait_for(client, &client->answered, timeout_ms);
}

struct loop *native_client_loop(struct native_client *client)
{
    return client->loop;
}

int native_client_send(struct native_client *client, const struct envelope *message)
{
    return client_send(client, message);
}

int native_client_settle(struct native_client *client, uint32_t timeout_ms)
{
    int ret = client_send(client,
                          &(struct envelope){ .kind = ENVELOPE_PING, .id = client->next_id++ });
    client->ponged = false;
    return ret < 0 ? ret : wait_for(client, &client->ponged, timeout_ms);
}

bool native_client_refused(const struct native_client *client)
{
    return client->refused;
}

bool native_client_lost(const struct native_client *client)
{
    return client->lost;
}

void native_client_free(struct native_client *client)
{
    if (!client)
        return;
    while (client->calls)
        native_call_free(client->calls);
    while (client->streams)
        native_stream_free(client->streams);
    sp_free(client->sp);
    stream_dialer_free(client->dialer);
    stream_listener_free(client->listener);
    loop_timer_free(client->deadline);
    if (!client->shares_loop)
        loop_free(client->loop);
    free(client);
}

int native_call_start(struct native_client *client, const char *function, const void *body,
                      size_t size, struct native_call **ret_call)
{
    const struct envelope message = {
        .kind = ENVELOPE_CALL,
        .operation = { function, strlen(function) },
        .deadline_ms = ENVELOPE_NO_DEADLINE,
        .body = { body, size },
    };
    return native_call_start_with(client, &message, ret_call);
}

int native_call_start_with(struct native_client *client, const struct envelope *call_message,
                           struct native_call **ret_call)
{
    struct envelope message = *call_message;
    struct native_call *call = calloc(1, sizeof(*call));
    if (!call)
        return -ENOMEM;
    call->client = client;
    call->id = client->next_id++;
    call->next = client->calls;
    client->calls = call;
    message.id = call->id;
    int ret = client_send(client, &message);
    if (ret < 0) {
        native_call_free(call);
        return ret;
    }
    *ret_call = call;
    return 0;
}

int native_call_wait(struct native_call *call, uint32_t timeout_ms)
{
    return wait_for(call->client, &call->done, timeout_ms);
}

bool native_call_done(const struct native_call *call)
{
    return call->done;
}

bool native_call_ok(const struct native_call *call)
{
    return call->ok;
}

const char *native_call_body(const struct native_call *call, size_t *ret_size)
{
    if (ret_size)
        *ret_size = call->body.size;
    return buf_text((struct buf *)&call->body);
}

size_t native_call_event_count(const struct native_call *call)
{
    return call->event_count;
}

const char *native_call_event(const struct native_call *call, size_t index)
{
    return buf_text(&call->events[index]);
}

void native_call_cancel(struct native_call *call)
{
    (void)client_send(call->client,
                      &(struct envelope){ .kind = ENVELOPE_CANCEL, .id = call->id });
}

void native_call_free(struct native_call *call)
{
    if (!call)
        return;
    struct native_call **link = &call->client->calls;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    for (size_t i = 0; i < call->event_count; i++)
        buf_done(&call->events[i]);
    free(call->events);
    buf_done(&call->body);
    free(call);
}

int native_stream_open(struct native_client *client, const char *channel_id,
                       const char *access_key, bool write, struct native_stream **ret_stream)
{
    struct native_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return -ENOMEM;
    stream->client = client;
    stream->write = write;
    stream->id = client->next_id++;
    stream->next = client->streams;
    client->streams = stream;
    int ret = client_send(client, &(struct envelope){
                                      .kind = ENVELOPE_OPEN,
                                      .id = stream->id,
                                      .channel_id = { channel_id, strlen(channel_id) },
                                      .access_key = { access_key, strlen(access_key) },
                                      .write = write,
                                  });
    if (ret == 0 && !write) {
        ret = client_send(client, &(struct envelope){
                                      .kind = ENVELOPE_CREDIT,
                                      .id = stream->id,
                                      .credit = ENVELOPE_WINDOW_BYTES,
                                  });
    }
    if (ret < 0) {
        native_stream_free(stream);
        return ret;
    }
    *ret_stream = stream;
    return 0;
}

/* Turns the loop once, at most until the deadline armed by the caller. */
static int stream_turn(struct native_stream *stream)
{
    if (stream->client->timed_out)
        return -ETIMEDOUT;
    (void)loop_turn(stream->client->loop, -1);
    return 0;
}

static void arm(struct native_stream *stream, uint32_t timeout_ms)
{
    stream->client->timed_out = false;
    loop_timer_arm(stream->client->deadline, timeout_ms);
}

static int send_data(struct native_stream *stream, const void *data, size_t size)
{
    uint8_t head[ENVELOPE_HEAD_MAX];
    const struct iovec parts[] = {
        { .iov_base = head, .iov_len = envelope_head(ENVELOPE_DATA, stream->id, size, head) },
        { .iov_base = (void *)data, .iov_len = size }, /* only read */
    };
    return stream->client->lost ? -EPIPE
                                : sp_sendv(stream->client->sp, parts, ARRAY_SIZE(parts));
}

int native_stream_write(struct native_stream *stream, const void *data, size_t size,
                        uint32_t timeout_ms)
{
    const char *next = data;
    arm(stream, timeout_ms);
    while (size > 0) {
        while (stream->credit == 0 && !stream->ended) {
            if (stream_turn(stream) < 0)
                return -ETIMEDOUT;
        }
        if (stream->ended)
            return -ECONNRESET;
        size_t part = size < ENVELOPE_DATA_MAX_BYTES ? size : ENVELOPE_DATA_MAX_BYTES;
        if (part > stream->credit)
            part = stream->credit;
        int ret = send_data(stream, next, part);
        if (ret < 0)
            return ret;
        stream->credit -= part;
        next += part;
        size -= part;
    }
    loop_timer_disarm(stream->client->deadline);
    return 0;
}

uint64_t native_stream_credit(const struct native_stream *stream)
{
    return stream->credit;
}

bool native_stream_ended(const struct native_stream *stream)
{
    return stream->ended;
}

size_t native_stream_waiting(const struct native_stream *stream)
{
    return stream->incoming.size - stream->read;
}

int native_stream_close(struct native_stream *stream)
{
    int ret = client_send(stream->client,
                          &(struct envelope){ .kind = ENVELOPE_CLOSE, .id = stream->id });
    stream->ended = true;
    /* The caller may never turn the loop again. */
    return ret < 0 ? ret : native_client_settle(stream->client, PONG_TIMEOUT_MS);
}

/* Half a window at a time: each message of credit costs its receiver a wake-up. */
static void grant(struct native_stream *stream, size_t size)
{
    stream->granted += size;
    if (stream->granted < ENVELOPE_WINDOW_BYTES / 2)
        return;
    (void)client_send(stream->client, &(struct envelope){
                                          .kind = ENVELOPE_CREDIT,
                                          .id = stream->id,
                                          .credit = stream->granted,
                                      }); /* a lost link shows in the next read */
    stream->granted = 0;
}

ssize_t native_stream_read(struct native_stream *stream, void *data, size_t size,
                           uint32_t timeout_ms)
{
    arm(stream, timeout_ms);
    while (native_stream_waiting(stream) == 0 && !stream->ended) {
        if (stream_turn(stream) < 0)
            return -ETIMEDOUT;
    }
    loop_timer_disarm(stream->client->deadline);
    if (native_stream_waiting(stream) == 0)
        return stream->aborted ? -ECONNRESET : 0;
    if (size > native_stream_waiting(stream))
        size = native_stream_waiting(stream);
    memcpy(data, stream->incoming.data + stream->read, size);
    stream->read += size;
    if (native_stream_waiting(stream) == 0 || stream->read >= ENVELOPE_WINDOW_BYTES) {
        buf_consume(&stream->incoming, stream->read);
        stream->read = 0;
    }
    if (!stream->ended)
        grant(stream, size);
    return (ssize_t)size;
}

const char *native_stream_code(const struct native_stream *stream)
{
    return stream->code;
}

const char *native_stream_reason(const struct native_stream *stream)
{
    return stream->reason;
}

void native_stream_free(struct native_stream *stream)
{
    if (!stream)
        return;
    struct native_client *client = stream->client;
    if (!stream->ended && !client->lost) {
        (void)client_send(client, &(struct envelope){
                                      .kind = ENVELOPE_CLOSE,
                                      .id = stream->id,
                                      .code = { "S218", 4 },
                                      .message = { "dropped by the test", 19 },
                                  });
    }
    struct native_stream **link = &client->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    buf_done(&stream->incoming);
    free(stream);
}
