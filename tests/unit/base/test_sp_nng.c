/* test_sp_nng.c - a plain nng PAIR0 socket on the other side, dialing and listening. */
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>

#include "link.h"
#include "sp.h"
#include "unit.h"

#define MESSAGES 2000
#define BIG_BYTES (4u * 1024 * 1024)

/* The nng side echoes each message, driven by nng's own threads. */
struct echo {
    nng_socket socket;
    nng_aio *aio;
    bool sending;
};

static void echo_step(void *argument)
{
    struct echo *echo = argument;

    if (nng_aio_result(echo->aio) != 0) {
        if (echo->sending)
            nng_msg_free(nng_aio_get_msg(echo->aio));
        return; /* the socket is closed */
    }
    echo->sending = !echo->sending;
    if (echo->sending) /* the message stays in the aio */
        nng_send_aio(echo->socket, echo->aio);
    else
        nng_recv_aio(echo->socket, echo->aio);
}

static void echo_open(struct echo *echo)
{
    *echo = (struct echo){ .sending = false };
    ck_assert_int_eq(nng_pair0_open(&echo->socket), 0);
    ck_assert_int_eq(nng_socket_set_size(echo->socket, NNG_OPT_RECVMAXSZ, 2 * BIG_BYTES), 0);
    ck_assert_int_eq(nng_aio_alloc(&echo->aio, echo_step, echo), 0);
    nng_recv_aio(echo->socket, echo->aio);
}

static void echo_close(struct echo *echo)
{
    (void)nng_close(echo->socket);
    nng_aio_stop(echo->aio);
    nng_aio_free(echo->aio);
}

struct side {
    struct link link;
    struct sp *sp;
    size_t ready, messages, closed;
    size_t last_size;
    bool wrong;
};

static void on_ready(void *ctx)
{
    ((struct side *)ctx)->ready++;
}

static void on_message(void *ctx, uint8_t *data, size_t size)
{
    struct side *side = ctx;
    uint32_t number = (uint32_t)side->messages++;

    side->last_size = size;
    side->wrong |= size < sizeof(number) || memcmp(data, &number, sizeof(number)) != 0;
}

static void on_closed(void *ctx, int error, const char *reason)
{
    struct side *side = ctx;

    side->closed++;
    sp_free(take_ptr(side->sp));
}

static const struct sp_events events = {
    .ready = on_ready,
    .message = on_message,
    .closed = on_closed,
};

static void side_connected(struct side *side, struct stream *own_stream)
{
    enum sp_mapping mapping = strncmp(side->link.url, "ipc", 3) == 0 ? SP_MAPPING_IPC
                                                                     : SP_MAPPING_TCP;

    ck_assert_int_eq(sp_new(side->link.loop, own_stream, mapping, 2 * BIG_BYTES, 5000, &events,
                            side, &side->sp),
                     0);
}

static void on_accepted(void *ctx, struct stream *own_stream)
{
    side_connected(ctx, own_stream);
}

static void on_dialed(void *ctx, int error, struct stream *own_stream)
{
    struct side *side = ctx;

    ck_assert_int_eq(error, 0);
    side_connected(side, own_stream);
}

static void check_echo(struct side *side)
{
    static uint8_t big[BIG_BYTES];
    uint32_t number = MESSAGES;

    TURN_UNTIL(side->link.loop, side->ready == 1);
    for (uint32_t i = 0; i < MESSAGES; i++)
        ck_assert_int_eq(sp_send(side->sp, &i, sizeof(i)), 0);
    memcpy(big, &number, sizeof(number));
    ck_assert_int_eq(sp_send(side->sp, big, sizeof(big)), 0);
    TURN_UNTIL(side->link.loop, side->messages == MESSAGES + 1);
    ck_assert(!side->wrong);
    ck_assert_uint_eq(side->last_size, BIG_BYTES);
}

static void check_nng_dials(const char *scheme)
{
    struct side side = { .sp = NULL };
    struct echo echo;
    struct link *link = &side.link;

    link_listen(link, scheme);
    stream_listener_free(take_ptr(link->listener));
    ck_assert_int_eq(
        stream_listen(link->loop, link->url, NULL, on_accepted, &side, &link->listener), 0);
    echo_open(&echo);
    ck_assert_int_eq(nng_dial(echo.socket, link->url, NULL, NNG_FLAG_NONBLOCK), 0);
    check_echo(&side);
    echo_close(&echo);
    TURN_UNTIL(link->loop, side.closed == 1);
    link_close(link);
}

static void check_nng_listens(const char *scheme)
{
    struct side side = { .sp = NULL };
    struct stream_dialer *dialer = NULL;
    struct echo echo;
    struct link *link = &side.link;

    link_listen(link, scheme); /* gives a free address */
    stream_listener_free(take_ptr(link->listener));
    echo_open(&echo);
    ck_assert_int_eq(nng_listen(echo.socket, link->url, NULL, 0), 0);
    ck_assert_int_eq(stream_dial(link->loop, link->url, NULL, 5000, on_dialed, &side, &dialer),
                     0);
    check_echo(&side);
    stream_dialer_free(dialer);
    sp_free(take_ptr(side.sp));
    echo_close(&echo);
    link_close(link);
}

START_TEST(test_nng_dials_ipc)
{
    check_nng_dials("ipc");
}
END_TEST

START_TEST(test_nng_dials_tcp)
{
    check_nng_dials("tcp");
}
END_TEST

START_TEST(test_nng_listens_ipc)
{
    check_nng_listens("ipc");
}
END_TEST

START_TEST(test_nng_listens_tcp)
{
    check_nng_listens("tcp");
}
END_TEST

UNIT_MAIN("sp_nng", test_nng_dials_ipc, test_nng_dials_tcp, test_nng_listens_ipc,
          test_nng_listens_tcp)
