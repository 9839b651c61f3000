/* serve.c - see serve.h.
 *
 * Whatever goes wrong with a connection ends in serve_lose(): it tells those who wait for the
 * router, and dials again later. */
#include "serve.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "channel.h"
#include "fault.h"
#include "info.h"
#include "keep_alive.h"
#include "log.h"
#include "request.h"
#include "router_call.h"
#include "sp.h"

#define SERVE_DIAL_MS 10000u
#define SERVE_HANDSHAKE_MS 5000u
#define SERVE_GREETING_MS 10000u
#define SERVE_BACKOFF_MIN_MS 50u
#define SERVE_BACKOFF_MAX_MS 2000u
#define SERVE_DOCS_BASE_MAX 1024u
#define SERVE_MESSAGE_DEFAULT_BYTES (16u * 1024 * 1024)

enum serve_state {
    SERVE_WAITING,  /* no connection; the timer dials again */
    SERVE_DIALING,  /* the dialer is at work */
    SERVE_GREETING, /* connected; HELLO goes out, WELCOME or REFUSED must come in time */
    SERVE_PARKED,   /* refused but kept: the router asks for adapter::info only */
    SERVE_READY,    /* welcome: calls come */
    SERVE_FINISHED, /* for good: what is queued goes out, or nothing is left */
    SERVE_STATE_MAX
};

static const char *const serve_state_names[] = { "waiting", "dialing", "greeting",
                                                 "parked",  "ready",   "finished" };
static_assert(ARRAY_SIZE(serve_state_names) == SERVE_STATE_MAX, "a name for each state");

static const bool serve_moves[SERVE_STATE_MAX][SERVE_STATE_MAX] = {
    [SERVE_WAITING] = { [SERVE_DIALING] = true, [SERVE_FINISHED] = true },
    [SERVE_DIALING] = { [SERVE_WAITING] = true,
                        [SERVE_GREETING] = true,
                        [SERVE_FINISHED] = true },
    [SERVE_GREETING] = { [SERVE_WAITING] = true,
                         [SERVE_PARKED] = true,
                         [SERVE_READY] = true,
                         [SERVE_FINISHED] = true },
    [SERVE_PARKED] = { [SERVE_WAITING] = true, [SERVE_FINISHED] = true },
    [SERVE_READY] = { [SERVE_WAITING] = true, [SERVE_FINISHED] = true },
};

struct serve {
    struct adapter *adapter;
    char *url;
    enum serve_state state;
    struct stream_dialer *dialer; /* SERVE_DIALING */
    struct sp *sp;                /* from SERVE_GREETING on */
    uint64_t link;                /* generation: of this connection, or the last one */
    uint64_t next_id;
    struct keep_alive keep_alive; /* SERVE_PARKED, SERVE_READY */
    struct loop_timer *timer;     /* SERVE_WAITING: dial; SERVE_GREETING: give up; else PING */
    uint32_t backoff_ms;
    int last_dial_error;     /* logged when it changes: a router may be away for days */
    struct loop_notice doom; /* deferred: the connection must end, but not inside a send */
    const char *doom_reason; /* NULL: it need not */
    char *docs_base;         /* NULL: none told */
    size_t max_message_bytes;
    size_t first_window;
    void (*finished)(void *ctx); /* SERVE_FINISHED; NULL once it was called */
    void *finished_ctx;
};

static void serve_dial(struct serve *serve);
static const struct sp_events serve_sp_events;

static void serve_set_state(struct serve *serve, enum serve_state state)
{
    assert(serve_moves[serve->state][state]);
    log_event(state == SERVE_READY ? LOG_INFO : LOG_DEBUG, "serve_state",
              log_text("from", serve_state_names[serve->state]),
              log_text("to", serve_state_names[state]), log_text("router", serve->url));
    serve->state = state;
}

/* Between half of it and all of it, so that adapters of one router do not dial in step. */
static uint32_t jitter(uint32_t delay_ms)
{
    uint32_t random_bits = 0;

    /* Without randomness the delay is merely not spread. */
    if (getrandom(&random_bits, sizeof(random_bits), GRND_NONBLOCK) != sizeof(random_bits))
        return delay_ms;
    return delay_ms / 2 + random_bits % (delay_ms / 2 + 1);
}

static void serve_wait(struct serve *serve)
{
    serve_set_state(serve, SERVE_WAITING);
    loop_timer_arm(serve->timer, jitter(serve->backoff_ms));
    serve->backoff_ms *= 2;
    if (serve->backoff_ms > SERVE_BACKOFF_MAX_MS)
        serve->backoff_ms = SERVE_BACKOFF_MAX_MS;
}

/* The end of a connection, whoever ended it. Nothing that the callees do can send: the link is
 * no more when they hear of it. */
static void serve_lose(struct serve *serve, const char *reason)
{
    uint64_t link = serve->link;

    log_event(LOG_WARN, "router_lost", log_text("router", serve->url),
              log_text("state", serve_state_names[serve->state]), log_text("reason", reason));
    serve->doom_reason = NULL;
    loop_notice_cancel(adapter_loop(serve->adapter), &serve->doom);
    sp_free(take_ptr(serve->sp));
    serve_wait(serve);
    router_calls_link_lost(adapter_router_calls(serve->adapter));
    channels_link_lost(adapter_channels(serve->adapter));
    requests_cancel_link(adapter_requests(serve->adapter), link);
}

/* For those who are inside a call of somebody who does not expect callbacks. */
static void serve_lose_soon(struct serve *serve, const char *reason)
{
    if (!serve->sp || serve->doom_reason || serve->state == SERVE_FINISHED)
        return;
    serve->doom_reason = reason;
    loop_defer(adapter_loop(serve->adapter), &serve->doom);
}

static void on_doom(void *ctx)
{
    struct serve *serve = ctx;

    serve_lose(serve, serve->doom_reason);
}

/* Sending. */

uint64_t serve_link(const struct serve *serve)
{
    return serve->state == SERVE_READY || serve->state == SERVE_PARKED ? serve->link : 0;
}

static int serve_may_send(struct serve *serve, uint64_t link, size_t size)
{
    if (!serve->sp || link != serve->link || serve->doom_reason)
        return -ENOTCONN;
    if (size > serve->max_message_bytes)
        return -EMSGSIZE;
    if (sp_queued_bytes(serve->sp) <= SERVE_QUEUE_MAX_BYTES ||
        sp_queued_bytes(serve->sp) <= serve->max_message_bytes)
        return 0;
    serve_lose_soon(serve, "the router does not read");
    return -ENOTCONN;
}

int serve_send(struct serve *serve, uint64_t link, const struct envelope *message)
{
    _cleanup_(buf_done)
    struct buf bytes = { 0 };
    int ret = envelope_encode(message, &bytes);

    if (ret == 0)
        ret = serve_may_send(serve, link, bytes.size);
    return ret < 0 ? ret : sp_send(serve->sp, bytes.data, bytes.size);
}

int serve_send_body(struct serve *serve, uint64_t link, enum envelope_kind kind, uint64_t id,
                    const void *body, size_t size)
{
    uint8_t head[ENVELOPE_HEAD_MAX];
    size_t head_size = envelope_head(kind, id, size, head);
    struct iovec parts[] = {
        { .iov_base = head, .iov_len = head_size },
        { .iov_base = (void *)body, .iov_len = size }, /* only read */
    };
    int ret = serve_may_send(serve, link, head_size + size);

    return ret < 0 ? ret : sp_sendv(serve->sp, parts, ARRAY_SIZE(parts));
}

uint64_t serve_next_id(struct serve *serve)
{
    return serve->next_id++;
}

void serve_send_raw(struct serve *serve, const void *data, size_t size)
{
    if (serve->sp)
        (void)sp_send(serve->sp, data, size); /* a test's own message: lost is lost */
}

/* Greeting. */

static int serve_say_hello(struct serve *serve)
{
    struct envelope hello = { .kind = ENVELOPE_HELLO,
                              .role = span_of_text("adapter"),
                              .instance = span_of_text(adapter_instance(serve->adapter)) };

    info_announce(serve->adapter, &hello);
    return serve_send(serve, serve->link, &hello);
}

static bool output_fits(const struct adapter_settings *settings, size_t max_message_bytes)
{
    uint32_t max_output_bytes = settings->max_output_bytes;

    if (max_message_bytes >= 65536 && max_output_bytes <= (max_message_bytes - 65536) / 12)
        return true;
    log_event(LOG_ERROR, "max_output_bytes_too_large",
              log_uint("max_output_bytes", max_output_bytes),
              log_uint("router_max_message_bytes", max_message_bytes));
    return false;
}

bool serve_accepts(const struct serve *serve, const struct adapter_settings *settings)
{
    return serve->state != SERVE_READY || output_fits(settings, serve->max_message_bytes);
}

/* From now on its silence is its end. */
static void serve_watch(struct serve *serve)
{
    serve->keep_alive = (struct keep_alive){ .interval_ms = SERVE_PING_MS,
                                             .spans_max = SERVE_SILENCES_MAX };
    keep_alive_start(&serve->keep_alive, loop_now_ms(adapter_loop(serve->adapter)));
    loop_timer_arm(serve->timer, SERVE_PING_MS);
}

static const char *serve_welcome(struct serve *serve, const struct envelope *welcome)
{
    if (!output_fits(adapter_settings(serve->adapter), welcome->max_message_bytes))
        return "max_output_bytes exceeds (max_message_bytes of the router - 65536) / 12";
    serve->max_message_bytes = welcome->max_message_bytes;
    serve->first_window = welcome->credit;
    sp_set_max_message_bytes(serve->sp, serve->max_message_bytes);
    if (welcome->docs_base.size > 0 && welcome->docs_base.size <= SERVE_DOCS_BASE_MAX) {
        char *docs_base = strndup(welcome->docs_base.data, welcome->docs_base.size);

        if (!docs_base)
            return "no memory";
        free(serve->docs_base);
        serve->docs_base = docs_base;
    }
    serve->backoff_ms = SERVE_BACKOFF_MIN_MS;
    serve->last_dial_error = 0;
    serve_set_state(serve, SERVE_READY);
    serve_watch(serve);
    return NULL;
}

static const char *serve_refused(struct serve *serve, const struct envelope *refused)
{
    _cleanup_free_ char *message = strndup(refused->message.data ? refused->message.data : "",
                                           refused->message.size);

    log_event(LOG_ERROR, "router_refused", log_text("router", serve->url),
              log_text("message", message));
    serve_set_state(serve, SERVE_PARKED);
    serve_watch(serve);
    return NULL;
}

/* Messages. Each gives NULL, or why the connection must end. */

static const char *serve_ping(struct serve *serve, const struct envelope *ping)
{
    int ret = serve_send(serve, serve->link,
                         &(struct envelope){ .kind = ENVELOPE_PONG, .id = ping->id });

    return ret < 0 && serve->sp ? strerror(-ret) : NULL;
}

static const char *serve_greeted_message(struct serve *serve, const struct envelope *message)
{
    struct requests *requests = adapter_requests(serve->adapter);
    int ret;

    switch (message->kind) {
    case ENVELOPE_CALL:
        ret = requests_begin(requests, serve->link, message);
        return ret == -EEXIST ? "two calls with one id" : ret < 0 ? strerror(-ret) : NULL;
    case ENVELOPE_CANCEL:
        requests_cancel(requests, serve->link, message->id);
        return NULL;
    case ENVELOPE_REPLY:
    case ENVELOPE_ERROR:
        if (message->id >= serve->next_id)
            return "answer to a call never made";
        router_calls_answer(adapter_router_calls(serve->adapter), message);
        return NULL;
    case ENVELOPE_DATA:
    case ENVELOPE_CREDIT:
    case ENVELOPE_CLOSE:
        if (message->id >= serve->next_id)
            return "a channel never opened";
        ret = channels_message(adapter_channels(serve->adapter), message);
        return ret < 0 ? "data beyond the credit" : NULL;
    case ENVELOPE_EVENT:
        return NULL;
    default:
        return "a kind that routers do not send";
    }
}

static const char *serve_handle(struct serve *serve, const struct envelope *message)
{
    switch (message->kind) {
    case ENVELOPE_PING:
        return serve_ping(serve, message);
    case ENVELOPE_PONG:
        return NULL;
    default:
        break;
    }
    if (serve->state != SERVE_GREETING)
        return serve_greeted_message(serve, message);
    if (message->kind == ENVELOPE_WELCOME)
        return serve_welcome(serve, message);
    if (message->kind == ENVELOPE_REFUSED)
        return serve_refused(serve, message);
    return "a message before the greeting";
}

static void on_message(void *ctx, uint8_t *data, size_t size)
{
    struct serve *serve = ctx;
    const struct fault *fault = adapter_fault(serve->adapter);
    uint64_t link = serve->link;
    struct envelope message;
    const char *reason = NULL;
    int ret = envelope_decode(data, size, &message, &reason);

    keep_alive_heard(&serve->keep_alive, loop_now_ms(adapter_loop(serve->adapter)));
    if (ret == -ENOTSUP) /* of a later minor */
        return;
    if (ret == 0 && fault && fault->received && fault->received(fault->ctx, message.kind))
        return;
    if (ret == 0)
        reason = serve_handle(serve, &message);
    if (reason && serve->sp && serve->link == link)
        serve_lose(serve, reason);
}

static void on_ready(void *ctx)
{
    struct serve *serve = ctx;
    int ret = serve_say_hello(serve);

    if (ret < 0 && serve->sp)
        serve_lose(serve, strerror(-ret));
}

static void serve_finished(struct serve *serve)
{
    void (*finished)(void *) = take_ptr(serve->finished);

    loop_timer_disarm(serve->timer);
    sp_free(take_ptr(serve->sp));
    if (finished)
        finished(serve->finished_ctx);
}

static void on_closed(void *ctx, int error, const char *reason)
{
    struct serve *serve = ctx;

    if (serve->state == SERVE_FINISHED)
        serve_finished(serve);
    else
        serve_lose(serve, reason);
}

static const struct sp_events serve_sp_events = {
    .ready = on_ready,
    .message = on_message,
    .closed = on_closed,
};

/* Dialing and keep-alive. */

static void on_dialed(void *ctx, int error, struct stream *own_stream)
{
    struct serve *serve = ctx;
    bool is_ipc = strncmp(serve->url, "ipc:", 4) == 0;

    stream_dialer_free(take_ptr(serve->dialer));
    if (error == 0)
        error = sp_new(adapter_loop(serve->adapter), own_stream,
                       is_ipc ? SP_MAPPING_IPC : SP_MAPPING_TCP, serve->max_message_bytes,
                       SERVE_HANDSHAKE_MS, &serve_sp_events, serve, &serve->sp);
    if (error < 0) {
        if (error != serve->last_dial_error)
            log_event(LOG_WARN, "router_unreachable", log_text("router", serve->url),
                      log_text("error", strerror(-error)));
        serve->last_dial_error = error;
        serve_wait(serve);
        return;
    }
    serve->link++;
    serve_set_state(serve, SERVE_GREETING);
    loop_timer_arm(serve->timer, SERVE_GREETING_MS);
}

static void serve_dial(struct serve *serve)
{
    const struct setting_tls *certificates =
        &snapshot_settings(adapter_snapshot(serve->adapter))->router.tls;
    struct tls_files tls = { .cert_file = certificates->cert,
                             .key_file = certificates->key,
                             .ca_file = certificates->ca };
    int ret;

    serve_set_state(serve, SERVE_DIALING);
    ret = stream_dial(adapter_loop(serve->adapter), serve->url,
                      strncmp(serve->url, "tls+", 4) == 0 ? &tls : NULL, SERVE_DIAL_MS,
                      on_dialed, serve, &serve->dialer);
    if (ret < 0)
        on_dialed(serve, ret, NULL);
}

static void serve_keep_alive(struct serve *serve)
{
    const struct fault *fault = adapter_fault(serve->adapter);
    uint64_t now_ms = loop_now_ms(adapter_loop(serve->adapter));
    uint32_t delay_ms;
    enum keep_alive_verdict verdict = keep_alive_tick(&serve->keep_alive, now_ms, &delay_ms);

    if (verdict == KEEP_ALIVE_LOST) {
        serve_lose(serve, "the router is silent");
        return;
    }
    loop_timer_arm(serve->timer, delay_ms);
    if (verdict == KEEP_ALIVE_WAIT)
        return;
    if (fault && fault->quiet && fault->quiet(fault->ctx))
        return;
    /* A failure to send is noticed by the silence, at the latest. */
    (void)serve_send(serve, serve->link, &(struct envelope){ .kind = ENVELOPE_PING });
}

static void on_timer(void *ctx)
{
    struct serve *serve = ctx;

    switch (serve->state) {
    case SERVE_WAITING:
        serve_dial(serve);
        break;
    case SERVE_GREETING:
        serve_lose(serve, "no greeting in time");
        break;
    case SERVE_PARKED:
    case SERVE_READY:
        serve_keep_alive(serve);
        break;
    case SERVE_FINISHED:
        serve_finished(serve);
        break;
    default:
        break;
    }
}

void serve_finish(struct serve *serve, uint32_t linger_ms, void (*done)(void *ctx), void *ctx)
{
    serve_set_state(serve, SERVE_FINISHED);
    serve->finished = done;
    serve->finished_ctx = ctx;
    loop_notice_cancel(adapter_loop(serve->adapter), &serve->doom);
    stream_dialer_free(take_ptr(serve->dialer));
    loop_timer_arm(serve->timer, serve->sp ? linger_ms : 0);
    if (serve->sp)
        sp_finish(serve->sp, linger_ms);
}

void serve_disconnect(struct serve *serve)
{
    serve_lose_soon(serve, "broken on purpose");
}

/* Life. */

int serve_new(struct adapter *adapter, const char *url, struct serve **ret_serve)
{
    _cleanup_(serve_freep)
    struct serve *serve = calloc(1, sizeof(*serve));
    int ret;

    if (!serve)
        return -ENOMEM;
    *serve = (struct serve){ .adapter = adapter,
                             .state = SERVE_WAITING,
                             .next_id = 1,
                             .backoff_ms = SERVE_BACKOFF_MIN_MS,
                             .max_message_bytes = SERVE_MESSAGE_DEFAULT_BYTES };
    serve->url = strdup(url);
    loop_notice_init(&serve->doom, on_doom, serve);
    if (!serve->url)
        return -ENOMEM;
    ret = loop_timer_new(adapter_loop(adapter), on_timer, serve, &serve->timer);
    if (ret < 0)
        return ret;
    loop_timer_arm(serve->timer, 0);
    *ret_serve = take_ptr(serve);
    return 0;
}

void serve_free(struct serve *serve)
{
    if (!serve)
        return;
    loop_notice_cancel(adapter_loop(serve->adapter), &serve->doom);
    stream_dialer_free(serve->dialer);
    sp_free(serve->sp);
    loop_timer_free(serve->timer);
    free(serve->docs_base);
    free(serve->url);
    free(serve);
}

const char *serve_docs_base(const struct serve *serve)
{
    return serve->docs_base ? serve->docs_base : ERROR_DOCS_BASE_DEFAULT;
}

size_t serve_max_message_bytes(const struct serve *serve)
{
    return serve->max_message_bytes;
}

size_t serve_first_window(const struct serve *serve)
{
    return serve->first_window;
}
