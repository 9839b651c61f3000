/* web_socket.h - a WebSocket to the router, as client: connect, upgrade, messages, close.
 *
 * States: dialing -> upgrading -> open -> closing or leaving -> ended; `closed` comes once, on
 * entering ended. The socket must not be freed from another callback than `closed`. */
#pragma once

#include "stream.h"
#include "websocket.h"

#define WEB_SOCKET_MESSAGE_MAX_BYTES (64u * 1024 * 1024)
#define WEB_SOCKET_CLOSE_WAIT_MS 1000u
#define WEB_SOCKET_LOST 1006u /* as code: TCP ended without a close frame, or never began */

struct web_socket;

struct endpoint {
    const char *host;
    uint16_t port;
};

struct web_socket_events {
    void (*opened)(void *ctx); /* may be NULL */
    /* One whole message, borrowed. */
    void (*message)(void *ctx, bool is_text, const uint8_t *data, size_t size);
    void (*drained)(void *ctx); /* after web_socket_is_full(); may be NULL */
    /* Once, last; the owner frees the socket, here or later. CODE: of the peer's close frame,
     * or WEB_SOCKET_LOST and WHY in words. */
    void (*closed)(void *ctx, unsigned code, const char *why);
};

/* PATH and ENDPOINT are borrowed for the call, EVENTS for the socket's life. TOKEN (NULL: none)
 * goes as bearer token. 0 or -errno. */
struct web_socket_spec {
    const struct endpoint *endpoint;
    const char *path;
    const char *token;
    const struct web_socket_events *events;
    void *ctx;
};
int web_socket_new(struct loop *loop, const struct web_socket_spec *spec,
                   struct web_socket **ret_socket);

/* Only while open. 0, -EPIPE, or -errno. */
int web_socket_send(struct web_socket *socket, enum websocket_opcode opcode, const void *data,
                    size_t size);
bool web_socket_is_open(const struct web_socket *socket);
bool web_socket_is_full(const struct web_socket *socket);
/* No message comes any more, but for those that are here already. */
void web_socket_pause(struct web_socket *socket);
void web_socket_resume(struct web_socket *socket);
/* Close frame behind what is queued; `closed` follows the echo, or WAIT_MS (0: for ever). */
void web_socket_close(struct web_socket *socket, unsigned code, const char *reason,
                      uint32_t wait_ms);
/* Drops TCP without a word; no callback follows. */
void web_socket_free(struct web_socket *socket);
DEFINE_CLEANUP(struct web_socket *, web_socket_free)
