/* native_peer.c - see native_peer.h: life, sending, and which messages a state allows. */
#include "native_peer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "engine.h"
#include "log.h"
#include "native_peer_state.h"

static const bool moves[PEER_STATE_MAX][PEER_STATE_MAX] = {
    [PEER_GREETING] = { [PEER_CALLER] = true,
                        [PEER_ADAPTER] = true,
                        [PEER_RIVAL] = true,
                        [PEER_CLOSING] = true },
    [PEER_CALLER] = { [PEER_CLOSING] = true },
    [PEER_ADAPTER] = { [PEER_CLOSING] = true },
    [PEER_RIVAL] = { [PEER_ADAPTER] = true, [PEER_CLOSING] = true },
};

static void greeting_leave(struct native_peer *peer)
{
    peer->front->greeting_count--;
    if (peer->remote)
        peer->front->remote_greeting_count--;
}

void native_peer_set_state(struct native_peer *peer, enum peer_state state)
{
    assert(moves[peer->state][state]);
    if (peer->state == PEER_GREETING)
        greeting_leave(peer);
    peer->state = state;
}

struct metrics_front_counters *native_peer_counters(const struct native_peer *peer)
{
    return &native_peer_router(peer)->metrics.fronts[METRICS_FRONT_NATIVE];
}

/* Sending. */

static void peer_sendv(struct native_peer *peer, const struct iovec *parts, int count)
{
    if (link_sendv(peer->link, parts, count) < 0) {
        link_break(peer->link, "a message could not be queued");
        return;
    }
    for (int i = 0; i < count; i++)
        native_peer_counters(peer)->sent_bytes += parts[i].iov_len;
    if (peer->backlog.backlog)
        backlog_grew(&peer->backlog);
}

void native_peer_send_body(struct native_peer *peer, enum envelope_kind kind, uint64_t id,
                           struct span body)
{
    uint8_t head[ENVELOPE_HEAD_MAX];
    struct iovec parts[] = {
        { .iov_base = head, .iov_len = envelope_head(kind, id, body.size, head) },
        { .iov_base = (void *)body.data, .iov_len = body.size },
    };

    peer_sendv(peer, parts, ARRAY_SIZE(parts));
}

void native_peer_send_whole(struct native_peer *peer, const uint8_t *data, size_t size)
{
    struct iovec part = { .iov_base = (void *)data, .iov_len = size };

    peer_sendv(peer, &part, 1);
}

void native_peer_send(struct native_peer *peer, const struct envelope *envelope)
{
    if (link_send_envelope(peer->link, envelope) < 0)
        link_break(peer->link, "a message could not be queued");
    else if (peer->backlog.backlog)
        backlog_grew(&peer->backlog);
}

/* An adapter's own calls. */

static void adapter_call(struct native_peer *peer, const struct envelope *envelope)
{
    struct refusal refusal;

    if (!span_equals(envelope->operation, "engine::channels::create")) {
        native_caller_send_engine_error(peer, envelope->id, "function_not_found",
                                        "an adapter may call engine::channels::create alone");
        return;
    }
    engine_channels_create(native_peer_router(peer), envelope->body, &refusal);
    native_caller_send_answer(peer, envelope->id, &refusal.answer);
    refusal_done(&refusal);
}

/* Messages. */

static void adapter_message(struct native_peer *peer, const struct envelope *envelope,
                            uint8_t *data, size_t size)
{
    switch (envelope->kind) {
    case ENVELOPE_REPLY:
    case ENVELOPE_ERROR:
    case ENVELOPE_EVENT:
        passthrough_message(&native_peer_router(peer)->passthrough, peer->adapter, envelope,
                            data, size);
        break;
    case ENVELOPE_CALL:
        adapter_call(peer, envelope);
        break;
    case ENVELOPE_OPEN:
    case ENVELOPE_DATA:
    case ENVELOPE_CREDIT:
    case ENVELOPE_CLOSE:
        native_streams_message(&peer->streams, envelope);
        break;
    default:
        link_break(peer->link, "a kind of message that adapters do not send");
        break;
    }
}

static void on_message(void *ctx, const struct envelope *envelope, uint8_t *data, size_t size)
{
    struct native_peer *peer = ctx;

    native_peer_counters(peer)->received_bytes += size;
    switch (peer->state) {
    case PEER_GREETING:
        native_hello_message(peer, envelope, data, size);
        break;
    case PEER_CALLER:
        native_caller_message(peer, envelope);
        break;
    case PEER_ADAPTER:
        adapter_message(peer, envelope, data, size);
        break;
    case PEER_RIVAL:
        link_break(peer->link, "a message before the welcome");
        break;
    default:
        break; /* closing: dropped */
    }
}

/* Life. */

static const char *peer_text(const struct native_peer *peer)
{
    if (peer->adapter)
        return peer->adapter->name;
    return peer->state == PEER_CALLER ? "caller" : "greeting";
}

static void peer_free(struct native_peer *peer)
{
    struct front_native *front = peer->front;

    if (peer->state == PEER_GREETING)
        greeting_leave(peer);
    list_remove(&peer->node);
    front->peer_count--;
    native_peer_counters(peer)->connections--;
    backlog_leave(&peer->backlog);
    native_streams_done(&peer->streams);
    table_free(peer->calls);
    loop_timer_free(peer->patience);
    buf_done(&peer->hello);
    link_free(peer->link);
    free(peer);
    if (front->closing && front->peer_count == 0 && front->closed)
        front->closed(front->closed_ctx);
}

/* The connection is over, whoever ended it. */
static void peer_end(struct native_peer *peer, const char *reason)
{
    struct native_peer *rival = peer->rival;

    if (rival)
        native_hello_rival_part(rival);
    if (peer->holder)
        native_hello_rival_part(peer);
    route_caller_gone(&peer->caller);
    native_streams_done(&peer->streams);
    if (peer->adapter)
        native_hello_adapter_lost(peer, reason);
    peer_free(peer);
    if (rival)
        native_hello_rival_promote(rival);
}

static void on_closed(void *ctx, bool by_us, const char *reason)
{
    struct native_peer *peer = ctx;

    if (by_us)
        native_peer_counters(peer)->dropped++;
    if (!by_us || log_limit_pass(&peer->front->ends, loop_now_ms(peer->front->router->loop)))
        log_event(by_us ? LOG_WARN : LOG_DEBUG, "native_closed",
                  log_text("peer", peer_text(peer)), log_text("why", reason));
    peer_end(peer, reason);
}

static void on_alive(void *ctx)
{
    native_hello_alive(ctx);
}

static void on_drained(void *ctx)
{
    struct native_peer *peer = ctx;

    native_streams_drained(&peer->streams);
}

static const struct link_events peer_link_events = {
    .message = on_message,
    .drained = on_drained,
    .alive = on_alive,
    .closed = on_closed,
};

static int peer_new(struct front_native *front, struct stream *own_stream,
                    enum sp_mapping mapping, struct native_peer **ret_peer)
{
    struct native_peer *peer = calloc(1, sizeof(*peer));
    int result;

    if (!peer) {
        stream_free(own_stream);
        return -ENOMEM;
    }
    *peer = (struct native_peer){ .front = front,
                                  .state = PEER_GREETING,
                                  .remote = mapping != SP_MAPPING_IPC };
    caller_init(&peer->caller, &native_caller_events, peer);
    list_append(&front->peers, &peer->node);
    front->peer_count++;
    front->greeting_count++;
    if (peer->remote)
        front->remote_greeting_count++;
    native_peer_counters(peer)->connections++;
    native_peer_counters(peer)->connections_made++;
    result = link_new(front->router->loop, own_stream, mapping, &front->timing,
                      &peer_link_events, peer, &peer->link);
    if (result == 0)
        result = table_new(&peer->calls);
    if (result == 0)
        result = native_streams_init(&peer->streams);
    if (result < 0) {
        peer_free(peer);
        return result;
    }
    *ret_peer = peer;
    return 0;
}

void native_peer_accept(struct front_native *front, struct stream *own_stream,
                        enum sp_mapping mapping)
{
    struct native_peer *peer;
    int result = peer_new(front, own_stream, mapping, &peer);

    if (result < 0)
        log_event(LOG_ERROR, "native_accept_failed", log_text("why", strerror(-result)));
}

void native_peer_drop_oldest_stranger(struct front_native *front)
{
    LIST_FOREACH(node, &front->peers)
    {
        struct native_peer *peer = LIST_ENTRY(node, struct native_peer, node);

        if (!peer->remote || peer->state != PEER_GREETING)
            continue;
        native_peer_set_state(peer, PEER_CLOSING);
        link_break(peer->link, "said no hello before its place was wanted");
        return;
    }
}

void native_peer_close(struct list *node, uint32_t linger_ms)
{
    struct native_peer *peer = LIST_ENTRY(node, struct native_peer, node);

    if (linger_ms == 0) {
        peer_end(peer, "shutdown");
        return;
    }
    if (peer->state != PEER_CLOSING)
        native_peer_set_state(peer, PEER_CLOSING);
    link_finish(peer->link, linger_ms);
}
