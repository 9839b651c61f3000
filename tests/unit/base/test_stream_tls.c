/* test_stream_tls.c - tls+tcp with certificates made for the test. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "link.h"
#include "proc.h"
#include "stream.h"
#include "unit.h"

#define MESSAGE_BYTES 300000u

static char directory[] = "/tmp/unit-tls.XXXXXX";
static char cert[64], key[64], other_cert[64], other_key[64];

static void make_certificate(const char *cert_path, const char *key_path)
{
    const char *const argv[] = { "openssl",
                                 "req",
                                 "-x509",
                                 "-newkey",
                                 "ec",
                                 "-pkeyopt",
                                 "ec_paramgen_curve:prime256v1",
                                 "-nodes",
                                 "-days",
                                 "2",
                                 "-subj",
                                 "/CN=localhost",
                                 "-addext",
                                 "subjectAltName=DNS:localhost",
                                 "-keyout",
                                 key_path,
                                 "-out",
                                 cert_path,
                                 NULL };
    struct proc_spec spec = { .program = "openssl", .argv = argv };
    int pidfd, status;
    pid_t pid;

    ck_assert_int_eq(proc_spawn(&spec, &pid, &pidfd), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    closep(&pidfd);
}

static void certificates_open(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(cert, sizeof(cert), "%s/cert.pem", directory);
    (void)snprintf(key, sizeof(key), "%s/key.pem", directory);
    (void)snprintf(other_cert, sizeof(other_cert), "%s/other_cert.pem", directory);
    (void)snprintf(other_key, sizeof(other_key), "%s/other_key.pem", directory);
    make_certificate(cert, key);
    make_certificate(other_cert, other_key);
}

static void certificates_close(void)
{
    ck_assert_int_eq(unlink(cert) + unlink(key) + unlink(other_cert) + unlink(other_key), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}

static void tls_listen(struct link *link)
{
    struct tls_files tls = { .cert_file = cert, .key_file = key, .ca_file = cert };

    link_listen(link, "tcp");
    stream_listener_free(take_ptr(link->listener));
    ck_assert_int_eq(stream_listen(link->loop, "tls+tcp://localhost:0", &tls, link_accepted,
                                   link, &link->listener),
                     0);
    (void)snprintf(link->url, sizeof(link->url), "tls+tcp://localhost:%u",
                   stream_listener_port(link->listener));
}

static void tls_dial(struct link *link, const struct tls_files *tls)
{
    ck_assert_int_eq(
        stream_dial(link->loop, link->url, tls, 5000, link_dialed, link, &link->dialer), 0);
    TURN_UNTIL(link->loop, link->dialed);
    if (link->client.stream)
        (void)stream_send(link->client.stream, "hello", 5);
}

static void tls_open(struct link *link)
{
    struct tls_files tls = { .cert_file = cert, .key_file = key, .ca_file = cert };

    tls_listen(link);
    tls_dial(link, &tls);
    TURN_UNTIL(link->loop, link->server.got.size == 5);
}

START_TEST(test_mutual_tls)
{
    struct link link;
    _cleanup_free_ uint8_t *message = calloc(1, MESSAGE_BYTES);

    certificates_open();
    tls_open(&link);
    ck_assert_int_eq(stream_send(link.server.stream, message, MESSAGE_BYTES), 0);
    stream_finish(link.server.stream, 5000);
    TURN_UNTIL(link.loop, link.client.closed && link.server.closed);
    ck_assert_uint_eq(link.client.got.size, MESSAGE_BYTES);
    ck_assert_int_eq(link.client.error, 0);
    ck_assert_int_eq(link.server.error, 0);
    link_close(&link);
    certificates_close();
}
END_TEST

/* OpenSSL's client: its standard input is INPUT, the write end of what it prints OUTPUT. */
static int spawn_openssl(const struct link *link, int input, int output, pid_t *ret_pid)
{
    char peer[64];
    const char *const argv[] = { "openssl", "s_client", "-quiet",   "-verify_return_error",
                                 "-CAfile", cert,       "-cert",    cert,
                                 "-key",    key,        "-connect", peer,
                                 NULL };
    const struct proc_fd fds[] = { { input, 0 }, { output, 1 } };
    const struct proc_spec spec = {
        .program = "openssl", .argv = argv, .fds = fds, .fd_count = ARRAY_SIZE(fds)
    };
    int pidfd;

    (void)snprintf(peer, sizeof(peer), "localhost:%u", stream_listener_port(link->listener));
    ck_assert_int_eq(proc_spawn(&spec, ret_pid, &pidfd), 0);
    return pidfd;
}

/* Our TLS and that of others: both ways, and our end is heard as one. */
START_TEST(test_another_implementation)
{
    struct link link;
    _cleanup_close_ int pidfd = -1;
    int input[2], output[2], status;
    char answer[8] = { 0 };
    pid_t pid;

    certificates_open();
    tls_listen(&link);
    ck_assert_int_eq(pipe2(input, O_CLOEXEC) + pipe2(output, O_CLOEXEC), 0);
    pidfd = spawn_openssl(&link, input[0], output[1], &pid);
    ck_assert_int_eq(close(input[0]) + close(output[1]), 0);
    ck_assert_int_eq(write(input[1], "hello", 5), 5);
    TURN_UNTIL(link.loop, link.server.got.size == 5);
    ck_assert_mem_eq(link.server.got.data, "hello", 5);
    ck_assert_int_eq(stream_send(link.server.stream, "bye", 3), 0);
    stream_finish(link.server.stream, 5000);
    TURN_UNTIL(link.loop, link.server.closed);
    ck_assert_int_eq(link.server.error, 0);
    ck_assert_int_eq(read(output[0], answer, sizeof(answer)), 3);
    ck_assert_mem_eq(answer, "bye", 3);
    ck_assert_int_eq(read(output[0], answer, sizeof(answer)), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(close(input[1]) + close(output[0]), 0);
    link_close(&link);
    certificates_close();
}
END_TEST

/* A reader that takes nothing until the writer has ended: of each size of what was sent, all
 * arrives, and then the end. The socket is full at some of them, and nothing lies anywhere else
 * where the writer's end could drop it. */
START_TEST(test_all_arrives_before_the_end)
{
    struct link link;
    _cleanup_free_ uint8_t *message = calloc(1, MESSAGE_BYTES);

    certificates_open();
    for (size_t size = MESSAGE_BYTES - 20 * 1024; size < MESSAGE_BYTES; size += 5000) {
        tls_open(&link);
        stream_pause(link.client.stream);
        ck_assert_int_eq(stream_send(link.server.stream, message, size), 0);
        stream_finish(link.server.stream, 20000);
        turn_for(link.loop, 20);
        ck_assert_uint_le(link.client.chunks, 1);
        stream_resume(link.client.stream);
        TURN_UNTIL(link.loop, link.client.closed && link.server.closed);
        ck_assert_uint_eq(link.client.got.size, size);
        ck_assert_int_eq(link.server.error, 0);
        link_close(&link);
    }
    certificates_close();
}
END_TEST

/* The end of a peer that goes at once, at whatever moment, is always told. */
START_TEST(test_each_end_is_told)
{
    struct link link;

    certificates_open();
    for (unsigned round = 0; round < 16; round++) {
        tls_open(&link);
        ck_assert_int_eq(stream_send(link.server.stream, "bye", 3), 0);
        if (round % 2 == 0)
            TURN_UNTIL(link.loop, link.client.got.size == 3);
        stream_free(take_ptr(link.server.stream));
        TURN_UNTIL(link.loop, link.client.closed);
        link_close(&link);
    }
    certificates_close();
}
END_TEST

/* What is queued before the handshake goes out after it, and a finish waits for that. */
START_TEST(test_finish_before_the_handshake)
{
    struct link link;
    struct tls_files tls;

    certificates_open();
    tls = (struct tls_files){ .cert_file = cert, .key_file = key, .ca_file = cert };
    tls_listen(&link);
    ck_assert_int_eq(
        stream_dial(link.loop, link.url, &tls, 5000, link_dialed, &link, &link.dialer), 0);
    TURN_UNTIL(link.loop, link.dialed);
    ck_assert_int_eq(stream_send(link.client.stream, "hello", 5), 0);
    stream_finish(link.client.stream, 5000);
    TURN_UNTIL(link.loop, link.client.closed && link.server.closed);
    ck_assert_uint_eq(link.server.got.size, 5);
    ck_assert_int_eq(link.client.error, 0);
    link_close(&link);
    certificates_close();
}
END_TEST

/* Who speaks no TLS, or breaks off a record, ends its own connection and nothing else. */
START_TEST(test_what_is_no_tls_ends_the_connection)
{
    struct link link, raw;

    certificates_open();
    tls_listen(&link);
    raw = (struct link){ .loop = link.loop };
    (void)snprintf(raw.url, sizeof(raw.url), "tcp://localhost:%u",
                   stream_listener_port(link.listener));
    link_dial(&raw);
    TURN_UNTIL(link.loop, raw.client.stream && link.server.stream);
    ck_assert_int_eq(stream_send(raw.client.stream, "GET / HTTP/1.1\r\n\r\n", 18), 0);
    TURN_UNTIL(link.loop, link.server.closed && raw.client.closed);
    ck_assert_int_eq(link.server.error, -EPROTO);
    ck_assert_uint_eq(link.server.got.size, 0);
    buf_done(&raw.client.got);
    tls_dial(&link, &(struct tls_files){ cert, key, cert });
    TURN_UNTIL(link.loop, link.server.got.size == 5);
    link_close(&link);
    certificates_close();
}
END_TEST

static void check_refused(const struct tls_files *tls)
{
    struct link link;

    tls_listen(&link);
    tls_dial(&link, tls);
    TURN_UNTIL(link.loop, link.client.closed && link.server.closed);
    ck_assert_int_lt(
        link.client.error < link.server.error ? link.client.error : link.server.error, 0);
    ck_assert_uint_eq(link.server.got.size, 0);
    link_close(&link);
}

START_TEST(test_strangers_are_refused)
{
    struct tls_files anonymous = { .ca_file = cert };
    struct tls_files impostor = { .cert_file = other_cert,
                                  .key_file = other_key,
                                  .ca_file = cert };
    struct tls_files distrustful = { .cert_file = cert,
                                     .key_file = key,
                                     .ca_file = other_cert };

    certificates_open();
    check_refused(&anonymous);
    check_refused(&impostor);
    check_refused(&distrustful);
    certificates_close();
}
END_TEST

START_TEST(test_settings_are_checked)
{
    struct tls_files trusting = { .cert_file = cert, .key_file = key };
    struct tls_files missing = { .cert_file = "/nonexistent",
                                 .key_file = key,
                                 .ca_file = cert };
    struct tls_files swapped = { .cert_file = key, .key_file = cert, .ca_file = cert };
    struct link link;
    struct stream_listener *listener = NULL;
    struct stream_dialer *dialer = NULL;

    certificates_open();
    tls_listen(&link);
    ck_assert_int_eq(
        stream_dial(link.loop, link.url, &trusting, 100, link_dialed, &link, &dialer), -EINVAL);
    ck_assert_int_eq(stream_dial(link.loop, link.url, NULL, 100, link_dialed, &link, &dialer),
                     -EINVAL);
    ck_assert_int_eq(stream_listen(link.loop, "tls+tcp://localhost:0", NULL, link_accepted,
                                   &link, &listener),
                     -EINVAL);
    ck_assert_int_eq(stream_listen(link.loop, "tls+tcp://localhost:0", &missing, link_accepted,
                                   &link, &listener),
                     -ENOENT);
    ck_assert_int_lt(stream_listen(link.loop, "tls+tcp://localhost:0", &swapped, link_accepted,
                                   &link, &listener),
                     0);
    ck_assert_ptr_null(listener);
    ck_assert_ptr_null(dialer);
    link_close(&link);
    certificates_close();
}
END_TEST

UNIT_MAIN("stream_tls", test_mutual_tls, test_another_implementation,
          test_all_arrives_before_the_end, test_each_end_is_told,
          test_finish_before_the_handshake, test_what_is_no_tls_ends_the_connection,
          test_strangers_are_refused, test_settings_are_checked)
