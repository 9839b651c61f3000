/* web_client.h - the other end of the front's sockets: plain, non-blocking, turned by the same
 * loop as the front, so that a test is one thread and deterministic. */
#pragma once

#include "loop.h"
#include "websocket.h"

struct web_client {
    struct loop *loop;
    int fd;
    struct buf input; /* read and not consumed */
    struct websocket ws;
    struct buf message; /* of the last client_expect_*() */
    bool ended;         /* the front has closed TCP */
};

void client_connect(struct web_client *client, struct loop *loop, uint16_t port);
void client_close(struct web_client *client); /* TCP, without a word */

void client_send_bytes(struct web_client *client, const void *data, size_t size);
/* What goes without waiting; the result is how much did. */
size_t client_send_some(struct web_client *client, const void *data, size_t size);
void client_send(struct web_client *client, const char *text); /* raw text */
/* Reads until the text so far ends in END; the text is client->message. */
const char *client_read_until(struct web_client *client, const char *end);
/* Reads until the front ends TCP; what came is client->message. */
const char *client_read_all(struct web_client *client);

/* Connects and upgrades PATH; the answer must be the 101. */
void client_open(struct web_client *client, struct loop *loop, uint16_t port, const char *path);
/* The same, and takes the greeting of a main socket. */
void client_open_main(struct web_client *client, struct loop *loop, uint16_t port);

void client_frame(struct web_client *client, enum websocket_opcode opcode, const void *data,
                  size_t size);
void client_text(struct web_client *client, const char *text);
/* The next event. */
struct websocket_event client_next(struct web_client *client);
/* It must be a text message; the result is its text. */
const char *client_expect_text(struct web_client *client);
/* It must be a close frame with this code, and TCP must end once it was answered. */
void client_expect_close(struct web_client *client, unsigned code);

/* Some turns of the loop, for things to happen that nobody waits for. */
void client_idle(struct web_client *client);
