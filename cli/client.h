/* client.h - calls to the router over one main socket, and waiting for their ends.
 *
 * A command is a straight line: begin a call, wait, look at the answer. client_wait() turns the
 * loop meanwhile, so that several calls and sockets can be under way. */
#pragma once

#include "interrupt.h"
#include "list.h"
#include "span.h"
#include "web_socket.h"

#define CLIENT_NO_DEADLINE UINT64_MAX
#define CLIENT_TEXT_MAX_BYTES 512
#define CLIENT_WHY_MAX_BYTES 256

struct client {
    struct loop *loop;
    struct interrupt interrupt;
    struct endpoint endpoint; /* borrowed host */
    const char *token;        /* borrowed, or NULL */
    struct web_socket *socket;
    struct list calls; /* struct client_call, begun and not over */
    uint64_t next_id;
    bool lost;
    char why_lost[CLIENT_WHY_MAX_BYTES];
};

enum client_call_state {
    CLIENT_CALL_NEW,    /* not begun */
    CLIENT_CALL_QUEUED, /* waits for the socket to open */
    CLIENT_CALL_SENT,
    CLIENT_CALL_OVER /* answered, or never will be: see client_wait() */
};

/* Zero-initialised, then client_call_begin(). Lives with its owner until client_call_done(). */
struct client_call {
    struct list node;
    enum client_call_state state;
    uint64_t id;
    struct buf frame;  /* while queued */
    struct buf answer; /* JSON: the result, or the error object of the frame */
    bool is_error;
    void (*progress)(void *ctx, struct span event); /* set before the beginning; NULL: none */
    void *progress_ctx;
};

struct client_request {
    const char *function;
    struct span payload;    /* JSON */
    const char *name_space; /* NULL: none */
};

/* HOST and TOKEN are borrowed. Makes loop and signals; connects with the first call. 0, -errno.
 */
int client_init(struct client *client, const struct endpoint *endpoint, const char *token);
void client_done(struct client *client);

/* 0 or -errno. */
int client_call_begin(struct client *client, struct client_call *call,
                      const struct client_request *request);
void client_call_done(struct client_call *call); /* twice is fine */

enum client_outcome {
    CLIENT_ANSWERED,
    CLIENT_TIMED_OUT,
    CLIENT_INTERRUPTED, /* client->interrupt.caught */
    CLIENT_LOST         /* client->why_lost */
};

uint64_t client_now_ms(const struct client *client);
/* DEADLINE_MS on client_now_ms()'s clock. IGNORE_SIGNAL: one that was caught does not end it.
 */
enum client_outcome client_wait(struct client *client, const struct client_call *call,
                                uint64_t deadline_ms, bool ignore_signal);
/* The same for anything: DONE is asked after each turn. */
enum client_outcome client_wait_for(struct client *client, bool (*done)(const void *ctx),
                                    const void *ctx, uint64_t deadline_ms, bool ignore_signal);
/* Begins and waits. */
enum client_outcome client_run(struct client *client, struct client_call *call,
                               const struct client_request *request, uint64_t deadline_ms);

/* Forgets a lost connection, so that the next call makes a new one. */
void client_reset(struct client *client);
/* Says goodbye with 1000 and waits a moment for the echo; a signal ends the wait. */
void client_close(struct client *client);
/* The same whatever signal was caught. Calls under way are cancelled by it, but for those whose
 * answer comes ahead of the echo. */
void client_leave(struct client *client);

/* Why there is no answer, in words, for OUTCOME that is not CLIENT_ANSWERED. */
void client_explain(const struct client *client, enum client_outcome outcome,
                    const char *function, uint64_t timeout_ms,
                    char ret_text[CLIENT_TEXT_MAX_BYTES]);
