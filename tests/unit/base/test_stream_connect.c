/* test_stream_connect.c - listening and dialing, with peers that leave at the wrong moment. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "link.h"
#include "stream.h"
#include "unit.h"

#define ABORTIVE_CONNECTS 200

static void check_still_serves(struct link *link)
{
    size_t accepted = link->accepted;

    link_dial(link);
    TURN_UNTIL(link->loop, link->client.stream && link->accepted > accepted);
    TURN_UNTIL(link->loop, link->server.stream);
    buf_clear(&link->server.got);
    ck_assert_int_eq(stream_send(link->client.stream, "still here", 10), 0);
    TURN_UNTIL(link->loop, link->server.got.size == 10);
}

START_TEST(test_abortive_ipc_connects)
{
    struct link link;

    link_listen(&link, "ipc");
    for (int i = 0; i < ABORTIVE_CONNECTS; i++) {
        int fd = link_connect_raw(&link);

        if (i % 2)
            ck_assert_int_eq(send(fd, "\0SP", 3, MSG_NOSIGNAL), 3);
        closep(&fd);
        if (i % 5 == 0)
            ck_assert_int_eq(loop_turn(link.loop, 0), 0);
        if (i % 50 == 49) /* the backlog is 128 */
            TURN_UNTIL(link.loop, link.accepted == (size_t)i + 1);
    }
    check_still_serves(&link);
    link_close(&link);
}
END_TEST

START_TEST(test_abortive_tcp_connects)
{
    struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    struct link link;
    struct sockaddr_in address = { .sin_family = AF_INET };

    link_listen(&link, "tcp");
    address.sin_port = htons(stream_listener_port(link.listener));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < ABORTIVE_CONNECTS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
        closep(&fd);
        ck_assert_int_eq(loop_turn(link.loop, 0), 0);
        if (i % 50 == 49) { /* the backlog is 128; a real one behind it empties it */
            check_still_serves(&link);
            stream_free(take_ptr(link.client.stream));
        }
    }
    check_still_serves(&link);
    link_close(&link);
}
END_TEST

START_TEST(test_dial_refused)
{
    struct link link;

    link_listen(&link, "tcp");
    stream_listener_free(take_ptr(link.listener));
    link_dial(&link);
    TURN_UNTIL(link.loop, link.dialed);
    ck_assert_int_eq(link.dial_error, -ECONNREFUSED);
    ck_assert_ptr_null(link.client.stream);
    link_close(&link);

    link_listen(&link, "ipc");
    stream_listener_free(take_ptr(link.listener));
    link_dial(&link);
    TURN_UNTIL(link.loop, link.dialed);
    ck_assert(link.dial_error == -ENOENT || link.dial_error == -ECONNREFUSED);
    link_close(&link);
}
END_TEST

START_TEST(test_dial_cancelled)
{
    for (int turns = 0; turns < 6; turns++) {
        struct link link;

        link_listen(&link, turns % 2 ? "tcp" : "ipc");
        link_dial(&link);
        for (int i = 0; i < turns && link.dialer; i++)
            ck_assert_int_eq(loop_turn(link.loop, 0), 0);
        if (link.dialer) {
            stream_dialer_free(take_ptr(link.dialer));
            turn_for(link.loop, 5);
            ck_assert_uint_eq(link.dialed, 0);
        }
        link_close(&link);
    }
}
END_TEST

/* The connection waits, established, and nobody takes it. */
START_TEST(test_dial_result_never_taken)
{
    struct link link;

    link_listen(&link, "ipc");
    link_dial(&link);
    (void)usleep(20000); /* nng's threads connect while the loop stands still */
    stream_dialer_free(take_ptr(link.dialer));
    stream_listener_free(take_ptr(link.listener));
    turn_for(link.loop, 5);
    ck_assert_uint_eq(link.dialed + link.accepted, 0);
    link_close(&link);
}
END_TEST

START_TEST(test_bad_urls)
{
    struct loop *loop;
    struct stream_listener *listener = NULL;
    struct stream_dialer *dialer = NULL;
    char path[300];

    ck_assert_int_eq(loop_new(&loop), 0);
    (void)snprintf(path, sizeof(path), "ipc:///%0200d", 1);
    ck_assert_int_lt(stream_listen(loop, path, NULL, link_accepted, NULL, &listener), 0);
    ck_assert_int_lt(stream_listen(loop, "what://x", NULL, link_accepted, NULL, &listener), 0);
    ck_assert_int_lt(stream_listen(loop, "", NULL, link_accepted, NULL, &listener), 0);
    ck_assert_int_lt(stream_listen(loop, "ipc:///nonexistent/directory/socket", NULL,
                                   link_accepted, NULL, &listener),
                     0);
    ck_assert_int_lt(
        stream_listen(loop, "tcp://192.0.2.1:0", NULL, link_accepted, NULL, &listener), 0);
    ck_assert_int_lt(stream_dial(loop, "what://x", NULL, 100, link_dialed, NULL, &dialer), 0);
    ck_assert_ptr_null(listener);
    ck_assert_ptr_null(dialer);
    loop_free(loop);
}
END_TEST

START_TEST(test_address_in_use)
{
    struct stream_listener *second = NULL;
    struct link link;

    link_listen(&link, "tcp");
    ck_assert_int_eq(stream_listen(link.loop, link.url, NULL, link_accepted, &link, &second),
                     -EADDRINUSE);
    link_close(&link);
    link_listen(&link, "ipc");
    ck_assert_int_eq(stream_listen(link.loop, link.url, NULL, link_accepted, &link, &second),
                     -EADDRINUSE);
    check_still_serves(&link); /* the first one's socket is untouched */
    link_close(&link);
}
END_TEST

START_TEST(test_ipc_socket_file)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct link link;
    struct stat status;
    int fd;

    link_listen(&link, "ipc");
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", link.directory);
    ck_assert_int_eq(stat(address.sun_path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    stream_listener_free(take_ptr(link.listener));

    (void)unlink(address.sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* one left behind */
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    closep(&fd);
    ck_assert_int_eq(
        stream_listen(link.loop, link.url, NULL, link_accepted, &link, &link.listener), 0);
    check_still_serves(&link);
    link_close(&link);
}
END_TEST

static void accepted_and_frees_listener(void *ctx, struct stream *own_stream)
{
    struct link *link = ctx;

    link->accepted++;
    stream_listener_free(take_ptr(link->listener));
    stream_free(own_stream);
}

START_TEST(test_listener_freed_by_accept)
{
    struct link link;

    link_listen(&link, "ipc");
    stream_listener_free(take_ptr(link.listener));
    ck_assert_int_eq(stream_listen(link.loop, link.url, NULL, accepted_and_frees_listener,
                                   &link, &link.listener),
                     0);
    link_dial(&link);
    TURN_UNTIL(link.loop, link.accepted && link.client.closed);
    ck_assert_uint_eq(link.accepted, 1);
    link_close(&link);
}
END_TEST

UNIT_MAIN("stream_connect", test_abortive_ipc_connects, test_abortive_tcp_connects,
          test_dial_refused, test_dial_cancelled, test_dial_result_never_taken, test_bad_urls,
          test_address_in_use, test_ipc_socket_file, test_listener_freed_by_accept)
