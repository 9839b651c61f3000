/* test_stream_tls.c - tls+tcp with certificates made for the test; without TLS in nng:
 * -ENOTSUP. */
#include <errno.h>
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

/* False: this nng has no TLS, and says so. */
static bool tls_listen(struct link *link)
{
    struct stream_tls tls = { .cert_file = cert, .key_file = key, .ca_file = cert };
    int result;

    link_listen(link, "tcp");
    stream_listener_free(take_ptr(link->listener));
    result = stream_listen(link->loop, "tls+tcp://localhost:0", &tls, link_accepted, link,
                           &link->listener);
    if (result == -ENOTSUP)
        return false;
    ck_assert_int_eq(result, 0);
    (void)snprintf(link->url, sizeof(link->url), "tls+tcp://localhost:%u",
                   stream_listener_port(link->listener));
    return true;
}

static void tls_dial(struct link *link, const struct stream_tls *tls)
{
    ck_assert_int_eq(
        stream_dial(link->loop, link->url, tls, 5000, link_dialed, link, &link->dialer), 0);
    TURN_UNTIL(link->loop, link->dialed);
    if (link->client.stream) /* begins the handshake */
        (void)stream_send(link->client.stream, "hello", 5);
}

START_TEST(test_mutual_tls)
{
    struct link link;
    _cleanup_free_ uint8_t *message = calloc(1, MESSAGE_BYTES);
    struct stream_tls tls = { 0 };

    certificates_open();
    tls = (struct stream_tls){ .cert_file = cert, .key_file = key, .ca_file = cert };
    if (tls_listen(&link)) {
        tls_dial(&link, &tls);
        TURN_UNTIL(link.loop, link.server.got.size == 5);
        ck_assert_int_eq(stream_send(link.server.stream, message, MESSAGE_BYTES), 0);
        stream_finish(link.server.stream, 5000);
        TURN_UNTIL(link.loop, link.client.got.size == MESSAGE_BYTES);
        TURN_UNTIL(link.loop, link.client.closed && link.server.closed);
    }
    link_close(&link);
    certificates_close();
}
END_TEST

static void check_refused(const struct stream_tls *tls)
{
    struct link link;

    if (tls_listen(&link)) {
        tls_dial(&link, tls);
        TURN_UNTIL(link.loop, link.client.closed || link.dial_error);
        ck_assert_uint_eq(link.server.got.size, 0);
    }
    link_close(&link);
}

START_TEST(test_strangers_are_refused)
{
    struct stream_tls anonymous = { .ca_file = cert };
    struct stream_tls impostor = { .cert_file = other_cert,
                                   .key_file = other_key,
                                   .ca_file = cert };
    struct stream_tls distrustful = { .cert_file = cert,
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
    struct stream_tls trusting = { .cert_file = cert, .key_file = key };
    struct stream_tls missing = { .cert_file = "/nonexistent",
                                  .key_file = key,
                                  .ca_file = cert };
    struct stream_tls swapped = { .cert_file = key, .key_file = cert, .ca_file = cert };
    struct link link;
    struct stream_listener *listener = NULL;
    struct stream_dialer *dialer = NULL;

    certificates_open();
    if (tls_listen(&link)) {
        ck_assert_int_eq(
            stream_dial(link.loop, link.url, &trusting, 100, link_dialed, &link, &dialer),
            -EINVAL);
        ck_assert_int_eq(
            stream_dial(link.loop, link.url, NULL, 100, link_dialed, &link, &dialer), -EINVAL);
        ck_assert_int_eq(stream_listen(link.loop, "tls+tcp://localhost:0", NULL, link_accepted,
                                       &link, &listener),
                         -EINVAL);
        ck_assert_int_eq(stream_listen(link.loop, "tls+tcp://localhost:0", &missing,
                                       link_accepted, &link, &listener),
                         -ENOENT);
        ck_assert_int_lt(stream_listen(link.loop, "tls+tcp://localhost:0", &swapped,
                                       link_accepted, &link, &listener),
                         0);
    }
    ck_assert_ptr_null(listener);
    ck_assert_ptr_null(dialer);
    link_close(&link);
    certificates_close();
}
END_TEST

UNIT_MAIN("stream_tls", test_mutual_tls, test_strangers_are_refused, test_settings_are_checked)
