/* web_main.h - the main socket of a client, `/`: its frames and who it says it is (iii-wire 3).
 *
 * Calls are web_call.c's, what the router tells of itself web_engine.c's. */
#pragma once

#include "log_limit.h"
#include "route.h"
#include "uuid.h"
#include "web_connection.h"
#include "web_frame.h"

/* All main sockets of the front. */
struct web_clients {
    struct router *router;
    struct list mains; /* struct web_main, oldest first */
    struct log_limit bad_frames;
};

enum web_identity {
    WEB_IDENTITY_NAME,
    WEB_IDENTITY_RUNTIME,
    WEB_IDENTITY_VERSION,
    WEB_IDENTITY_OS,
    WEB_IDENTITY_MAX
};

struct web_main {
    struct list node;
    struct web_clients *clients;
    struct web_connection *connection;
    struct caller caller;
    struct list calls; /* struct web_call */
    char worker_id[UUID_TEXT_BYTES];
    char reattach_token[UUID_TEXT_BYTES];
    uint64_t connected_at_ms;         /* Unix time */
    bool speaks;                      /* it has sent a frame that is no telemetry */
    char *identity[WEB_IDENTITY_MAX]; /* as registered, or NULL */
    char *registrations[WEB_REGISTRATIONS_MAX];
    size_t registration_count;
};

void web_clients_init(struct web_clients *clients, struct router *router);

/* Upgrades the connection, from its `request`, and greets the client. -ENOMEM or -errno of the
 * random source: nothing was sent. */
int web_main_accept(struct web_clients *clients, struct web_connection *connection,
                    struct span key);

/* The decoded text of a JSON string, cut at MAX_BYTES at a character; NULL: it is none. */
char *web_text_of(struct span string, size_t max_bytes);
