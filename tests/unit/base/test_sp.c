/* test_sp.c - the framing: torn, joined, hostile, paused and oversized messages. */
#include "sp.h"

#include <endian.h>
#include <errno.h>

#include "link.h"
#include "unit.h"

#define MESSAGE_LIMIT (40u * 1024 * 1024)
#define HANDSHAKE "\0SP\0\0\x10\0\0"

struct peer {
    struct sp *sp;
    struct loop *loop;
    size_t ready, messages, drained, closed;
    size_t bytes;
    struct buf last; /* the latest message */
    int error;
    char reason[64];
    size_t pause_at;  /* message number that pauses; 0: none */
    size_t free_at;   /* message number that frees; 0: none */
    size_t finish_at; /* message number that finishes; 0: none */
    bool free_on_ready;
    bool check_sequence; /* messages are u32 counting from 0 */
};

static void on_ready(void *ctx)
{
    struct peer *peer = ctx;

    peer->ready++;
    if (peer->free_on_ready)
        sp_free(take_ptr(peer->sp));
}

static void on_message(void *ctx, uint8_t *data, size_t size)
{
    struct peer *peer = ctx;
    uint32_t number = (uint32_t)peer->messages;

    if (peer->check_sequence && (size != 4 || memcmp(data, &number, 4) != 0))
        ck_abort_msg("message %u is another", number);
    peer->messages++;
    peer->bytes += size;
    if (!peer->check_sequence) {
        buf_clear(&peer->last);
        ck_assert_int_eq(buf_append(&peer->last, data, size), 0);
    }
    if (peer->messages == peer->pause_at)
        sp_pause(peer->sp);
    if (peer->messages == peer->finish_at)
        sp_finish(peer->sp, 5000);
    if (peer->messages == peer->free_at)
        sp_free(take_ptr(peer->sp));
    memset(data, 0xAA, size);
}

static void on_drained(void *ctx)
{
    ((struct peer *)ctx)->drained++;
}

static void on_closed(void *ctx, int error, const char *reason)
{
    struct peer *peer = ctx;

    ck_assert_uint_eq(peer->closed, 0);
    peer->closed++;
    peer->error = error;
    (void)snprintf(peer->reason, sizeof(peer->reason), "%s", reason);
    sp_free(take_ptr(peer->sp));
}

static const struct sp_events events = {
    .ready = on_ready,
    .message = on_message,
    .drained = on_drained,
    .closed = on_closed,
};

static void peer_start(struct peer *peer, struct link *link, struct link_end *end,
                       uint32_t handshake_ms)
{
    enum sp_mapping mapping = strncmp(link->url, "ipc", 3) == 0 ? SP_MAPPING_IPC
                                                                : SP_MAPPING_TCP;

    peer->loop = link->loop;
    ck_assert_int_eq(sp_new(link->loop, take_ptr(end->stream), mapping, MESSAGE_LIMIT,
                            handshake_ms, &events, peer, &peer->sp),
                     0);
}

struct fixture {
    struct link link;
    struct peer server, client;
    int fd; /* the raw peer */
};

static void accept_quietly(void *ctx, struct stream *own_stream)
{
    struct link *link = ctx;

    link->accepted++;
    link->server.stream = own_stream;
}

static void dialed_quietly(void *ctx, int error, struct stream *own_stream)
{
    struct link *link = ctx;

    ck_assert_int_eq(error, 0);
    stream_dialer_free(take_ptr(link->dialer));
    link->client.stream = own_stream;
}

static void fixture_listen(struct fixture *fixture, const char *scheme)
{
    struct link *link = &fixture->link;

    memset(fixture, 0, sizeof(*fixture));
    fixture->fd = -1;
    link_listen(link, scheme);
    stream_listener_free(take_ptr(link->listener));
    ck_assert_int_eq(
        stream_listen(link->loop, link->url, NULL, accept_quietly, link, &link->listener), 0);
}

static void fixture_open(struct fixture *fixture, const char *scheme)
{
    struct link *link = &fixture->link;

    fixture_listen(fixture, scheme);
    ck_assert_int_eq(
        stream_dial(link->loop, link->url, NULL, 5000, dialed_quietly, link, &link->dialer), 0);
    TURN_UNTIL(link->loop, link->client.stream && link->server.stream);
    peer_start(&fixture->server, link, &link->server, 5000);
    peer_start(&fixture->client, link, &link->client, 5000);
    ck_assert_uint_eq(fixture->server.ready, 0);
}

/* The server's peer is a plain socket that said BYTES. */
static void fixture_open_raw(struct fixture *fixture, const void *bytes, size_t size)
{
    struct link *link = &fixture->link;

    fixture_listen(fixture, "ipc");
    fixture->fd = link_connect_raw(link);
    TURN_UNTIL(link->loop, link->server.stream);
    peer_start(&fixture->server, link, &link->server, 200);
    ck_assert_int_eq(send(fixture->fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void fixture_close(struct fixture *fixture)
{
    sp_free(fixture->server.sp);
    sp_free(fixture->client.sp);
    buf_done(&fixture->server.last);
    buf_done(&fixture->client.last);
    closep(&fixture->fd);
    link_close(&fixture->link);
}

START_TEST(test_exchange)
{
    static const char *const schemes[] = { "ipc", "tcp" };

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        struct fixture f;
        struct iovec parts[] = { { (void *)"one ", 4 }, { NULL, 0 }, { (void *)"message", 7 } };

        fixture_open(&f, schemes[i]);
        ck_assert_int_eq(sp_sendv(f.client.sp, parts, 3), 0);
        ck_assert_int_eq(sp_send(f.server.sp, "", 0), 0);
        TURN_UNTIL(f.link.loop, f.server.messages == 1 && f.client.messages == 1);
        ck_assert_str_eq(buf_text(&f.server.last), "one message");
        ck_assert_uint_eq(f.client.last.size, 0);
        ck_assert_uint_eq(f.server.ready, 1);
        ck_assert_uint_eq(f.client.ready, 1);
        fixture_close(&f);
    }
}
END_TEST

START_TEST(test_order_of_many)
{
    struct fixture f;

    fixture_open(&f, "ipc");
    f.server.check_sequence = true;
    for (uint32_t i = 0; i < 200000; i++) {
        if (sp_send(f.client.sp, &i, sizeof(i)) != 0)
            ck_abort_msg("message %u was not taken", i);
        if (i % 5000 == 0)
            ck_assert_int_eq(loop_turn(f.link.loop, 0), 0);
    }
    TURN_UNTIL(f.link.loop, f.server.messages == 200000);
    fixture_close(&f);
}
END_TEST

START_TEST(test_sizes_around_the_chunk)
{
    struct fixture f;
    _cleanup_free_ uint8_t *data = malloc(300000);

    for (size_t i = 0; i < 300000; i++)
        data[i] = (uint8_t)(i * 31 >> 3);
    fixture_open(&f, "ipc");
    for (size_t size = 65500; size < 65560; size++) {
        size_t before = f.server.messages;

        ck_assert_int_eq(sp_send(f.client.sp, data, size), 0);
        ck_assert_int_eq(sp_send(f.client.sp, data, 3), 0);
        ck_assert_int_eq(sp_send(f.client.sp, data, size * 4), 0);
        TURN_UNTIL(f.link.loop, f.server.messages == before + 3);
        ck_assert_uint_eq(f.server.last.size, size * 4);
        ck_assert(memcmp(f.server.last.data, data, size * 4) == 0);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(test_big_message)
{
    const size_t size = 32u * 1024 * 1024;
    struct fixture f;
    _cleanup_free_ uint8_t *data = malloc(size);

    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 31 >> 9);
    fixture_open(&f, "tcp");
    ck_assert_int_eq(sp_send(f.client.sp, data, size), 0);
    TURN_UNTIL(f.link.loop, f.server.messages == 1 && f.client.drained == 1);
    ck_assert_uint_eq(f.server.last.size, size);
    ck_assert(memcmp(f.server.last.data, data, size) == 0);
    fixture_close(&f);
}
END_TEST

START_TEST(test_byte_by_byte)
{
    static const char bytes[] = HANDSHAKE "\1\0\0\0\0\0\0\0\3abc"
                                          "\1\0\0\0\0\0\0\0\0"
                                          "\1\0\0\0\0\0\0\0\2de";
    struct fixture f;

    fixture_open_raw(&f, bytes, 1);
    for (size_t i = 1; i < sizeof(bytes) - 1; i++) {
        turn_for(f.link.loop, 1);
        ck_assert_uint_le(f.server.messages, (i > 19) + (i > 28) + (i > 39)); /* never early */
        ck_assert_int_eq(send(f.fd, bytes + i, 1, MSG_NOSIGNAL), 1);
    }
    TURN_UNTIL(f.link.loop, f.server.messages == 3);
    ck_assert_str_eq(buf_text(&f.server.last), "de");
    fixture_close(&f);
}
END_TEST

static void check_broken(const void *bytes, size_t size, int error)
{
    struct fixture f;

    fixture_open_raw(&f, bytes, size);
    TURN_UNTIL(f.link.loop, f.server.closed);
    ck_assert_int_eq(f.server.error, error);
    ck_assert_uint_gt(strlen(f.server.reason), 5);
    ck_assert_uint_eq(f.server.messages, 0);
    fixture_close(&f);
}

START_TEST(test_hostile_peers)
{
    check_broken("GET / HTTP/1.1\r\n\r\n", 18, -EPROTO);
    check_broken("\0SP\0\0\x30\0\0", 8, -EPROTO);                  /* REQ, not PAIR */
    check_broken(HANDSHAKE "\1\x40\0\0\0\0\0\0\0", 17, -EMSGSIZE); /* 2^62 */
    check_broken(HANDSHAKE "\1\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 17, -EMSGSIZE);
    check_broken(HANDSHAKE "\2\0\0\0\0\0\0\0\1x", 18, -EPROTO);    /* unknown type */
    check_broken(HANDSHAKE "\1\0\0\0\0\2\x80\0\1", 17, -EMSGSIZE); /* one over the limit */
    check_broken("\0SP\0", 4, -ETIMEDOUT);
}
END_TEST

/* 40 MiB are announced, and never come: nothing may be allocated for them. */
START_TEST(test_announced_size_is_not_allocated)
{
    struct fixture f;
    char handshake[16];

    fixture_open_raw(&f, HANDSHAKE "\1\0\0\0\0\2\x80\0\0ab", 19);
    TURN_UNTIL(f.link.loop, f.server.ready);
    turn_for(f.link.loop, 20);
    ck_assert_int_eq(recv(f.fd, handshake, sizeof(handshake), 0), 8);
    closep(&f.fd);
    TURN_UNTIL(f.link.loop, f.server.closed);
    ck_assert_int_eq(f.server.error, 0);
    ck_assert_str_eq(f.server.reason, "closed");
    fixture_close(&f);
}
END_TEST

START_TEST(test_limit_is_inclusive_and_may_change)
{
    struct fixture f;
    uint8_t data[101] = { 0 };

    fixture_open(&f, "ipc");
    sp_set_max_message_bytes(f.server.sp, 100);
    ck_assert_int_eq(sp_send(f.client.sp, data, 100), 0);
    TURN_UNTIL(f.link.loop, f.server.messages == 1);
    ck_assert_int_eq(sp_send(f.client.sp, data, 101), 0);
    TURN_UNTIL(f.link.loop, f.server.closed && f.client.closed);
    ck_assert_int_eq(f.server.error, -EMSGSIZE);
    fixture_close(&f);
}
END_TEST

START_TEST(test_pause_in_the_middle_of_a_chunk)
{
    struct fixture f;

    fixture_open(&f, "ipc");
    f.server.check_sequence = true;
    for (uint32_t i = 0; i < 30000; i++)
        ck_assert_int_eq(sp_send(f.client.sp, &i, sizeof(i)), 0);
    for (size_t at = 100; at < 30000; at += 1000) {
        f.server.pause_at = at;
        TURN_UNTIL(f.link.loop, f.server.messages == at);
        turn_for(f.link.loop, 2);
        ck_assert_uint_eq(f.server.messages, at);
        sp_resume(f.server.sp);
        ck_assert_uint_eq(f.server.messages, at); /* not from inside the call */
        sp_pause(f.server.sp);
        turn_for(f.link.loop, 2);
        ck_assert_uint_eq(f.server.messages, at);
        sp_resume(f.server.sp);
    }
    TURN_UNTIL(f.link.loop, f.server.messages == 30000);
    fixture_close(&f);
}
END_TEST

START_TEST(test_pause_holds_the_sender)
{
    struct fixture f;
    static uint8_t data[65536];

    fixture_open(&f, "ipc");
    TURN_UNTIL(f.link.loop, f.server.ready);
    sp_pause(f.server.sp);
    for (int i = 0; i < 500; i++)
        ck_assert_int_eq(sp_send(f.client.sp, data, sizeof(data)), 0);
    turn_for(f.link.loop, 50);
    ck_assert_uint_eq(f.server.messages, 0);
    ck_assert_uint_gt(sp_queued_bytes(f.client.sp), 400 * sizeof(data));
    ck_assert_uint_eq(f.client.drained, 0);
    sp_resume(f.server.sp);
    TURN_UNTIL(f.link.loop, f.server.messages == 500 && f.client.drained == 1);
    fixture_close(&f);
}
END_TEST

START_TEST(test_finish_delivers_the_last_message)
{
    struct fixture f;
    static uint8_t data[1 << 20];

    fixture_open(&f, "ipc");
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(sp_send(f.client.sp, data, sizeof(data)), 0);
    ck_assert_int_eq(sp_send(f.client.sp, "last", 4), 0);
    sp_finish(f.client.sp, 5000);
    ck_assert_int_eq(sp_send(f.client.sp, "late", 4), -EPIPE);
    TURN_UNTIL(f.link.loop, f.client.closed && f.server.closed);
    ck_assert_int_eq(f.client.error, 0);
    ck_assert_int_eq(f.server.error, 0);
    ck_assert_uint_eq(f.server.messages, 9);
    ck_assert_str_eq(buf_text(&f.server.last), "last");
    fixture_close(&f);
}
END_TEST

START_TEST(test_free_and_finish_from_own_callbacks)
{
    struct fixture f;

    fixture_open(&f, "ipc");
    f.server.free_at = 3;
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_int_eq(sp_send(f.client.sp, &i, sizeof(i)), 0);
    TURN_UNTIL(f.link.loop, f.client.closed);
    ck_assert_uint_eq(f.server.messages, 3);
    ck_assert_uint_eq(f.server.closed, 0);
    fixture_close(&f);

    fixture_open(&f, "ipc");
    f.server.finish_at = 3;
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_int_eq(sp_send(f.client.sp, &i, sizeof(i)), 0);
    TURN_UNTIL(f.link.loop, f.client.closed && f.server.closed);
    ck_assert_uint_eq(f.server.messages, 3);
    fixture_close(&f);

    fixture_open(&f, "ipc");
    f.server.free_on_ready = true;
    ck_assert_int_eq(sp_send(f.client.sp, "x", 1), 0);
    TURN_UNTIL(f.link.loop, f.client.closed);
    ck_assert_uint_eq(f.server.ready, 1);
    ck_assert_uint_eq(f.server.messages, 0);
    fixture_close(&f);

    fixture_open(&f, "ipc"); /* in the middle of a message that collects */
    f.server.free_at = 1;
    ck_assert_int_eq(sp_send(f.client.sp, f.link.url, sizeof(f.link.url)), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(sp_sendv(f.client.sp, &(struct iovec){ &f, sizeof(f) }, 1), 0);
    TURN_UNTIL(f.link.loop, f.client.closed);
    fixture_close(&f);
}
END_TEST

START_TEST(test_after_the_end)
{
    struct fixture f;
    uid_t uid;

    fixture_open(&f, "ipc");
    ck_assert_int_eq(sp_peer_uid(f.server.sp, &uid), 0);
    ck_assert_uint_eq(uid, getuid());
    sp_free(take_ptr(f.client.sp));
    TURN_UNTIL(f.link.loop, f.server.closed);
    ck_assert_str_eq(f.server.reason, "closed");
    fixture_close(&f);
}
END_TEST

UNIT_MAIN("sp", test_exchange, test_order_of_many, test_sizes_around_the_chunk,
          test_big_message, test_byte_by_byte, test_hostile_peers,
          test_announced_size_is_not_allocated, test_limit_is_inclusive_and_may_change,
          test_pause_in_the_middle_of_a_chunk, test_pause_holds_the_sender,
          test_finish_delivers_the_last_message, test_free_and_finish_from_own_callbacks,
          test_after_the_end)
