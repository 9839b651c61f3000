/* link.h - two streams on one loop, connected; and a directory of the test's own. */
#pragma once

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "buf.h"
#include "stream.h"
#include "turn.h"

struct link_end {
    struct stream *stream;
    struct buf got;
    size_t chunks;  /* `data` callbacks */
    size_t drained; /* callbacks */
    size_t closed;  /* callbacks */
    int error;      /* of `closed` */
    size_t discard; /* bytes counted instead of kept */
    bool count_only;
    bool free_on_data, free_on_drained, pause_on_data, finish_on_data;
};

struct link {
    struct loop *loop;
    char directory[32];
    char url[64];
    struct stream_listener *listener;
    struct stream_dialer *dialer;
    struct link_end server, client;
    int dial_error;
    size_t accepted, dialed;
};

static inline void link_data(void *ctx, uint8_t *data, size_t size)
{
    struct link_end *end = ctx;

    end->chunks++;
    if (end->count_only)
        end->discard += size;
    else
        ck_assert_int_eq(buf_append(&end->got, data, size), 0);
    if (end->pause_on_data)
        stream_pause(end->stream);
    if (end->finish_on_data)
        stream_finish(end->stream, 5000);
    if (end->free_on_data)
        stream_free(take_ptr(end->stream));
    memset(data, 0xAA, size); /* ours for the call, whatever was called above */
}

static inline void link_drained(void *ctx)
{
    struct link_end *end = ctx;

    end->drained++;
    if (end->free_on_drained)
        stream_free(take_ptr(end->stream));
}

static inline void link_closed(void *ctx, int error)
{
    struct link_end *end = ctx;

    end->closed++;
    end->error = error;
    stream_free(take_ptr(end->stream));
}

static const struct stream_events link_events = {
    .data = link_data,
    .drained = link_drained,
    .closed = link_closed,
};

static inline void link_accepted(void *ctx, struct stream *own_stream)
{
    struct link *link = ctx;

    link->accepted++;
    stream_free(link->server.stream); /* of an earlier connection */
    link->server.stream = own_stream;
    stream_start(own_stream, &link_events, &link->server);
}

static inline void link_dialed(void *ctx, int error, struct stream *own_stream)
{
    struct link *link = ctx;

    link->dialed++;
    link->dial_error = error;
    stream_dialer_free(take_ptr(link->dialer));
    if (!own_stream)
        return;
    link->client.stream = own_stream;
    stream_start(own_stream, &link_events, &link->client);
}

/* SCHEME: "ipc" or "tcp". */
static inline void link_listen(struct link *link, const char *scheme)
{
    *link = (struct link){ .loop = NULL };
    ck_assert_int_eq(loop_new(&link->loop), 0);
    (void)strcpy(link->directory, "/tmp/unit-link.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(link->directory));
    if (strcmp(scheme, "ipc") == 0)
        (void)snprintf(link->url, sizeof(link->url), "ipc://%s/socket", link->directory);
    else
        (void)strcpy(link->url, "tcp://127.0.0.1:0");
    ck_assert_int_eq(
        stream_listen(link->loop, link->url, NULL, link_accepted, link, &link->listener), 0);
    if (strcmp(scheme, "tcp") == 0)
        (void)snprintf(link->url, sizeof(link->url), "tcp://127.0.0.1:%u",
                       stream_listener_port(link->listener));
}

static inline void link_dial(struct link *link)
{
    ck_assert_int_eq(
        stream_dial(link->loop, link->url, NULL, 5000, link_dialed, link, &link->dialer), 0);
}

static inline void link_open(struct link *link, const char *scheme)
{
    link_listen(link, scheme);
    link_dial(link);
    TURN_UNTIL(link->loop, link->client.stream && link->server.stream);
}

static inline void link_close(struct link *link)
{
    char path[64];

    stream_dialer_free(link->dialer);
    stream_free(link->client.stream);
    stream_free(link->server.stream);
    stream_listener_free(link->listener);
    buf_done(&link->client.got);
    buf_done(&link->server.got);
    loop_free(link->loop);
    (void)snprintf(path, sizeof(path), "%s/socket", link->directory);
    (void)unlink(path); /* gone already, as a rule */
    ck_assert_int_eq(rmdir(link->directory), 0);
}

/* A connection without nng; blocking. */
static inline int link_connect_raw(const struct link *link)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", link->directory);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}
