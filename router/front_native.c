/* front_native.c - see front_native.h. */
#include "front_native.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "native_peer.h"
#include "router_limits.h"

static int fail(char *error, int number, const char *url)
{
    (void)snprintf(error, FRONT_NATIVE_ERROR_MAX, "cannot listen on %s: %s", url,
                   strerror(-number));
    return number;
}

/* Who may connect. */

/* The router's own uid or root; the directory's mode keeps others out before that. */
static bool uid_may_connect(struct front_native *front, const struct stream *stream)
{
    uid_t uid;
    int result = stream_peer_uid(stream, &uid);

    if (result == 0 && (uid == geteuid() || uid == 0))
        return true;
    if (log_limit_pass(&front->refusals, loop_now_ms(front->router->loop)))
        log_event(LOG_WARN, "native_refused", log_text("why", "the peer has another uid"),
                  log_int("uid", result == 0 ? (int64_t)uid : -1));
    return false;
}

static bool has_room(struct front_native *front)
{
    if (front->peer_count < NATIVE_CONNECTIONS_MAX &&
        front->greeting_count < NATIVE_GREETING_MAX)
        return true;
    if (log_limit_pass(&front->refusals, loop_now_ms(front->router->loop)))
        log_event(LOG_WARN, "native_refused", log_text("why", "too many connections"),
                  log_uint("connections", front->peer_count),
                  log_uint("greeting", front->greeting_count));
    return false;
}

static void on_ipc_accepted(void *ctx, struct stream *own_stream)
{
    struct front_native *front = ctx;

    if (has_room(front) && uid_may_connect(front, own_stream))
        native_peer_accept(front, own_stream, SP_MAPPING_IPC);
    else
        stream_free(own_stream);
}

/* TLS checks the certificate before anything of it comes through: mutual, never without. */
static void on_tls_accepted(void *ctx, struct stream *own_stream)
{
    struct front_native *front = ctx;

    if (front->remote_greeting_count == NATIVE_REMOTE_GREETING_MAX)
        native_peer_drop_oldest_stranger(front);
    if (has_room(front))
        native_peer_accept(front, own_stream, SP_MAPPING_TCP);
    else
        stream_free(own_stream);
}

/* Listening. */

static int listen_tls(struct front_native *front, char *error)
{
    const struct router_settings *settings = &front->router->settings->router;
    struct tls_files tls = {
        .cert_file = settings->tls.cert,
        .key_file = settings->tls.key,
        .ca_file = settings->tls.ca,
    };
    char *url;
    int result;

    if (!settings->adapter_listen)
        return 0;
    if (!tls.cert_file || !tls.key_file || !tls.ca_file) {
        (void)snprintf(error, FRONT_NATIVE_ERROR_MAX,
                       "sandbox.adapter_listen wants sandbox.tls with cert, key and ca");
        return -EINVAL;
    }
    url = strdup(settings->adapter_listen);
    if (!url)
        return fail(error, -ENOMEM, settings->adapter_listen);
    result = stream_listen(front->router->loop, url, &tls, on_tls_accepted, front, &front->tls);
    if (result < 0) {
        free(url);
        return fail(error, result, settings->adapter_listen);
    }
    front->tls_url = url;
    log_event(LOG_INFO, "native_listening", log_text("url", url));
    return 0;
}

static void stop_tls(struct front_native *front)
{
    stream_listener_free(take_ptr(front->tls));
    free(take_ptr(front->tls_url));
}

int front_native_open(struct front_native *front, struct router *router, const char *url,
                      const struct link_timing *timing, char ret_error[FRONT_NATIVE_ERROR_MAX])
{
    int result;

    *front = (struct front_native){ .router = router, .timing = *timing };
    list_init(&front->peers);
    result = stream_listen(router->loop, url, NULL, on_ipc_accepted, front, &front->ipc);
    if (result < 0)
        return fail(ret_error, result, url);
    log_event(LOG_INFO, "native_listening", log_text("url", url));
    return listen_tls(front, ret_error);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

void front_native_reload(struct front_native *front)
{
    char error[FRONT_NATIVE_ERROR_MAX];

    if (same_text(front->tls_url, front->router->settings->router.adapter_listen))
        return;
    stop_tls(front);
    if (listen_tls(front, error) < 0)
        log_event(LOG_ERROR, "native_listen_failed", log_text("why", error));
}

/* Shutdown. */

void front_native_stop_listening(struct front_native *front)
{
    stream_listener_free(take_ptr(front->ipc));
    stop_tls(front);
}

void front_native_close(struct front_native *front, uint32_t linger_ms)
{
    front_native_stop_listening(front);
    front->closing = true;
    if (list_empty(&front->peers) && front->closed)
        front->closed(front->closed_ctx);
    LIST_FOREACH(node, &front->peers)
    native_peer_close(node, linger_ms);
}

void front_native_done(struct front_native *front)
{
    front->closing = true;
    front->closed = NULL;
    front_native_stop_listening(front);
    while (!list_empty(&front->peers))
        native_peer_close(front->peers.next, 0);
}
