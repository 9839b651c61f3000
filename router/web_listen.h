/* web_listen.h - where the web front listens, and the token that listening beyond loopback
 * needs. */
#pragma once

#include "stream.h"
#include "tables.h"
#include "web_limits.h"

#define WEB_LISTEN_ERROR_MAX 512

struct web_listeners {
    struct stream_listener *items[WEB_LISTENERS_MAX];
    size_t count;
};

struct web_listen_spec {
    struct loop *loop;
    const struct text_list *addresses; /* HOST:PORT, [V6]:PORT */
    bool has_token;
    stream_accepted_fn accepted;
    void *ctx;
};

/* 0, or -1 and a text that names the address or the setting. A machine without IPv6 is a log
 * line for [::1]. */
int web_listeners_open(struct web_listeners *listeners, const struct web_listen_spec *spec,
                       char ret_error[WEB_LISTEN_ERROR_MAX]);
void web_listeners_close(struct web_listeners *listeners);

/* ADDRESS names this machine alone. */
bool web_address_is_loopback(const char *address);

/* The first line of PATH; the caller frees. 0, or -1 and a text that names the setting. */
int web_token_read(const char *path, char **ret_token, char ret_error[WEB_LISTEN_ERROR_MAX]);
