/* front_web.h - clients over HTTP and WebSocket, unmodified iii SDKs among them, and `iii`.
 *
 * Owns the listeners and the list of connections. A request's way: web_connection (bytes),
 * web_request (may it?), then web_main, web_channel or a plain answer. */
#pragma once

#include "router.h"
#include "web_listen.h"

struct front_web;

#define FRONT_WEB_ERROR_MAX WEB_LISTEN_ERROR_MAX

/* Listens on the settings' addresses. 0, or -1 and a text that names address or setting. ROUTER
 * is borrowed for the front's life. */
int front_web_new(struct router *router, struct front_web **ret_front,
                  char ret_error[FRONT_WEB_ERROR_MAX]);
/* After router_reload(): origins and token hold from now on. A token that cannot be read: the
 * old one stays, and the log says why. Addresses hold from the next start. */
void front_web_reload(struct front_web *front);

/* Accepts nothing more. */
void front_web_stop_listening(struct front_web *front);
/* The same, and closes what is open with 1001 behind what is queued. STOPPED is
 * called once, when all are gone: within WEB_STOP_MAX_MS, and soon for clients that listen. */
void front_web_stop(struct front_web *front, void (*stopped)(void *ctx), void *ctx);
void front_web_free(struct front_web *front);
DEFINE_CLEANUP(struct front_web *, front_web_free)

size_t front_web_connections(const struct front_web *front);
/* Port of the listener with this index, for port 0 in the settings; 0: no such listener. */
uint16_t front_web_port(const struct front_web *front, size_t index);
