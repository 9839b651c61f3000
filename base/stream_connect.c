/* stream_connect.c - listeners and dialers: how connections come to be. */
#include <errno.h>
#include <string.h>

#include "log.h"
#include "stream.h"
#include "stream_nng.h"

/* After an accept that failed for want of descriptors or memory; the peer waits in the backlog.
 */
#define ACCEPT_RETRY_MS 100
#define IPC_SOCKET_MODE 0600
#define TLS_URL_PREFIX "tls+"

DEFINE_CLEANUP(nng_url *, nng_url_free)

struct stream_listener {
    struct loop *loop;
    nng_stream_listener *nng;
    nng_aio *aio;
    struct loop_notice accept_done; /* notified by nng's thread */
    struct loop_timer *retry;
    stream_accepted_fn accepted;
    void *ctx;
    struct tls_config *tls; /* NULL: none */
    bool calling;           /* `accepted` is on the stack: freeing waits for it */
    bool freed;
};

struct stream_dialer {
    struct loop *loop;
    nng_stream_dialer *nng;
    nng_aio *aio;
    struct loop_notice dial_done; /* notified by nng's thread */
    struct tls_config *tls;       /* NULL: none */
    bool dialing;                 /* the result was not taken yet */
    stream_dialed_fn done;
    void *ctx;
};

int stream_errno(int nng_error)
{
    static const int table[] = {
        [NNG_EINTR] = EINTR,
        [NNG_ENOMEM] = ENOMEM,
        [NNG_EINVAL] = EINVAL,
        [NNG_EBUSY] = EBUSY,
        [NNG_ETIMEDOUT] = ETIMEDOUT,
        [NNG_ECONNREFUSED] = ECONNREFUSED,
        [NNG_ECLOSED] = EPIPE,
        [NNG_EAGAIN] = EAGAIN,
        [NNG_ENOTSUP] = ENOTSUP,
        [NNG_EADDRINUSE] = EADDRINUSE,
        [NNG_ESTATE] = EINVAL,
        [NNG_ENOENT] = ENOENT,
        [NNG_EPROTO] = EPROTO,
        [NNG_EUNREACHABLE] = EHOSTUNREACH,
        [NNG_EADDRINVAL] = EADDRNOTAVAIL,
        [NNG_EPERM] = EPERM,
        [NNG_EMSGSIZE] = EMSGSIZE,
        [NNG_ECONNABORTED] = ECONNABORTED,
        [NNG_ECONNRESET] = ECONNRESET,
        [NNG_ECANCELED] = ECANCELED,
        [NNG_ENOFILES] = EMFILE,
        [NNG_ENOSPC] = ENOSPC,
        [NNG_EEXIST] = EEXIST,
        [NNG_EREADONLY] = EROFS,
        [NNG_ECRYPTO] = EPROTO,
        [NNG_EPEERAUTH] = EACCES,
        [NNG_ECONNSHUT] = EPIPE,
    };

    if (nng_error == 0)
        return 0;
    if (nng_error & NNG_ESYSERR)
        return -(nng_error & ~NNG_ESYSERR);
    if (nng_error < 0 || (size_t)nng_error >= ARRAY_SIZE(table) || table[nng_error] == 0)
        return -EIO;
    return -table[nng_error];
}

static bool url_is_tls(const char *url)
{
    return strncmp(url, TLS_URL_PREFIX, strlen(TLS_URL_PREFIX)) == 0;
}

/* What nng is to carry URL's bytes by: TLS is ours. */
static const char *url_to_carry(const char *url)
{
    return url_is_tls(url) ? url + strlen(TLS_URL_PREFIX) : url;
}

void stream_aio_free(nng_aio **aio)
{
    if (!*aio)
        return;
    nng_aio_stop(*aio);
    nng_aio_free(take_ptr(*aio));
}

/* Listener. */

static void accept_completed(void *argument)
{
    struct stream_listener *listener = argument;

    loop_notify(listener->loop, &listener->accept_done);
}

static void listener_accept(void *ctx)
{
    struct stream_listener *listener = ctx;

    nng_stream_listener_accept(listener->nng, listener->aio);
}

static void listener_accepted(struct stream_listener *listener)
{
    struct stream *stream;
    int result = stream_wrap(listener->loop, nng_aio_get_output(listener->aio, 0),
                             listener->tls, &stream);

    if (result < 0) {
        log_event(LOG_WARN, "accept_failed", log_text("why", strerror(-result)));
        return;
    }
    listener->calling = true;
    listener->accepted(listener->ctx, stream);
    listener->calling = false;
}

static void on_accept_done(void *ctx)
{
    struct stream_listener *listener = ctx;
    int error = nng_aio_result(listener->aio);

    switch (error) {
    case 0:
        listener_accepted(listener);
        if (listener->freed)
            free(listener);
        else
            listener_accept(listener);
        break;
    case NNG_ECLOSED:
    case NNG_ECANCELED:
        log_event(LOG_ERROR, "listener_closed", log_text("why", nng_strerror(error)));
        break;
    case NNG_ECONNABORTED:
    case NNG_ECONNRESET:
    case NNG_ECONNSHUT:
        listener_accept(listener); /* that peer has left already */
        break;
    default:
        log_event(LOG_WARN, "accept_failed", log_text("why", nng_strerror(error)));
        loop_timer_arm(listener->retry, ACCEPT_RETRY_MS);
        break;
    }
}

static int listener_open(struct stream_listener *listener, const char *url,
                         const struct tls_files *tls)
{
    int result = url_is_tls(url) ? tls_config_new_server(tls, &listener->tls) : 0;
    int error;

    if (result < 0)
        return result;
    error = nng_stream_listener_alloc(&listener->nng, url_to_carry(url));
    if (error != 0)
        return error == NNG_EADDRINVAL ? -EINVAL : stream_errno(error);
    if (strncmp(url, "ipc:", 4) == 0)
        error = nng_stream_listener_set_int(listener->nng, NNG_OPT_IPC_PERMISSIONS,
                                            IPC_SOCKET_MODE);
    if (error == 0)
        error = nng_stream_listener_listen(listener->nng);
    if (error == 0)
        error = nng_aio_alloc(&listener->aio, accept_completed, listener);
    if (error != 0)
        return stream_errno(error);
    nng_aio_set_timeout(listener->aio, NNG_DURATION_INFINITE);
    return loop_timer_new(listener->loop, listener_accept, listener, &listener->retry);
}

int stream_listen(struct loop *loop, const char *url, const struct tls_files *tls,
                  stream_accepted_fn accepted, void *ctx, struct stream_listener **ret_listener)
{
    _cleanup_(stream_listener_freep)
    struct stream_listener *listener = calloc(1, sizeof(*listener));
    int result;

    if (!listener)
        return -ENOMEM;
    *listener = (struct stream_listener){ .loop = loop, .accepted = accepted, .ctx = ctx };
    loop_notice_init(&listener->accept_done, on_accept_done, listener);
    result = listener_open(listener, url, tls);
    if (result < 0)
        return result;
    listener_accept(listener);
    *ret_listener = take_ptr(listener);
    return 0;
}

uint16_t stream_listener_port(const struct stream_listener *listener)
{
    int port = 0;

    if (nng_stream_listener_get_int(listener->nng, NNG_OPT_TCP_BOUND_PORT, &port) != 0)
        return 0; /* no port: ipc */
    return (uint16_t)port;
}

void stream_listener_free(struct stream_listener *listener)
{
    bool untaken;

    if (!listener)
        return;
    if (listener->nng)
        nng_stream_listener_close(listener->nng);
    if (listener->aio)
        nng_aio_stop(listener->aio); /* no thread of nng's queues the notice any more */
    untaken = loop_notice_cancel(listener->loop, &listener->accept_done);
    /* A connection accepted but not taken yet is closed here. */
    if (listener->aio) {
        if (!listener->calling && untaken && nng_aio_result(listener->aio) == 0)
            nng_stream_free(nng_aio_get_output(listener->aio, 0));
        nng_aio_free(listener->aio);
    }
    if (listener->nng)
        nng_stream_listener_free(listener->nng);
    loop_timer_free(listener->retry);
    tls_config_free(listener->tls);
    listener->freed = true;
    if (!listener->calling)
        free(listener);
}

/* Dialer. */

static void dial_completed(void *argument)
{
    struct stream_dialer *dialer = argument;

    loop_notify(dialer->loop, &dialer->dial_done);
}

static void on_dial_done(void *ctx)
{
    struct stream_dialer *dialer = ctx;
    struct stream *stream = NULL;
    int result = stream_errno(nng_aio_result(dialer->aio));

    dialer->dialing = false;
    if (result == 0)
        result = stream_wrap(dialer->loop, nng_aio_get_output(dialer->aio, 0), dialer->tls,
                             &stream);
    dialer->done(dialer->ctx, result, stream); /* may free: nothing follows */
}

static int dialer_open_tls(struct stream_dialer *dialer, const char *url,
                           const struct tls_files *tls)
{
    _cleanup_(nng_url_freep)
    nng_url *parts = NULL;
    int error = nng_url_parse(&parts, url_to_carry(url));

    if (error != 0)
        return error == NNG_EADDRINVAL ? -EINVAL : stream_errno(error);
    return tls_config_new_client(tls, parts->u_hostname, &dialer->tls);
}

static int dialer_open(struct stream_dialer *dialer, const char *url,
                       const struct tls_files *tls)
{
    int result = url_is_tls(url) ? dialer_open_tls(dialer, url, tls) : 0;
    int error;

    if (result < 0)
        return result;
    error = nng_stream_dialer_alloc(&dialer->nng, url_to_carry(url));
    if (error != 0)
        return error == NNG_EADDRINVAL ? -EINVAL : stream_errno(error);
    return stream_errno(nng_aio_alloc(&dialer->aio, dial_completed, dialer));
}

int stream_dial(struct loop *loop, const char *url, const struct tls_files *tls,
                uint32_t timeout_ms, stream_dialed_fn done, void *ctx,
                struct stream_dialer **ret_dialer)
{
    _cleanup_(stream_dialer_freep)
    struct stream_dialer *dialer = calloc(1, sizeof(*dialer));
    int result;

    if (!dialer)
        return -ENOMEM;
    *dialer = (struct stream_dialer){ .loop = loop, .done = done, .ctx = ctx };
    loop_notice_init(&dialer->dial_done, on_dial_done, dialer);
    result = dialer_open(dialer, url, tls);
    if (result < 0)
        return result;
    nng_aio_set_timeout(dialer->aio,
                        timeout_ms > INT32_MAX ? INT32_MAX : (nng_duration)timeout_ms);
    dialer->dialing = true;
    nng_stream_dialer_dial(dialer->nng, dialer->aio);
    *ret_dialer = take_ptr(dialer);
    return 0;
}

void stream_dialer_free(struct stream_dialer *dialer)
{
    if (!dialer)
        return;
    if (dialer->nng)
        nng_stream_dialer_close(dialer->nng);
    if (dialer->aio) {
        nng_aio_stop(dialer->aio);
        if (dialer->dialing && nng_aio_result(dialer->aio) == 0)
            nng_stream_free(nng_aio_get_output(dialer->aio, 0));
        nng_aio_free(dialer->aio);
    }
    if (dialer->nng)
        nng_stream_dialer_free(dialer->nng);
    loop_notice_cancel(dialer->loop, &dialer->dial_done);
    tls_config_free(dialer->tls);
    free(dialer);
}
