/* test_native_peer.c - greetings, rivals, liveness, and peers that mean harm. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fixture.h"
#include "native_peer_state.h"
#include "router_limits.h"
#include "unit.h"

static const char mock[] = "  adapter: mock\n";

START_TEST(test_welcome)
{
    struct fixture fixture;
    struct peer peer;
    struct received *welcome;

    fixture_open(&fixture, "  adapter: mock\n  docs_base: 'https://docs.example/e#'\n", NULL);
    peer_dial(&peer, &fixture);
    peer_hello(&peer, "adapter", "mock", (struct contract_version){ 1, 0 });
    welcome = peer_take(&peer, ENVELOPE_WELCOME);
    ck_assert(span_equals(welcome->envelope.version, SANDBOX_VERSION));
    ck_assert_uint_eq(welcome->envelope.contract.major, 1);
    ck_assert_uint_eq(welcome->envelope.contract.minor, 2);
    ck_assert(span_equals(welcome->envelope.docs_base, "https://docs.example/e#"));
    ck_assert_uint_eq(welcome->envelope.max_message_bytes, 16u * 1024 * 1024);
    ck_assert_uint_eq(welcome->envelope.credit, ENVELOPE_WINDOW_BYTES);
    free(welcome);
    peer_close(&peer);
    fixture_close(&fixture);
}
END_TEST

/* Rival: the connected one answers and stays. */
START_TEST(test_rival_of_a_living_adapter)
{
    struct fixture fixture;
    struct peer first, second, third, caller;

    fixture_open(&fixture, mock, NULL);
    peer_as_adapter(&first, &fixture, "mock");
    peer_as_caller(&caller, &fixture);
    peer_call(&caller, 1, "sandbox::exec", "{}");
    peer_dial(&second, &fixture);
    peer_dial(&third, &fixture);
    peer_hello(&second, "adapter", "mock", (struct contract_version){ 1, 2 });
    peer_hello(&third, "adapter", "mock", (struct contract_version){ 1, 2 });
    peer_expect(&second, ENVELOPE_REFUSED);
    TURN_UNTIL(fixture.loop, second.closed && third.closed);
    peer_answer(&first, ENVELOPE_REPLY, peer_expect_call(&first, "exec"), "{}");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 1, "{}");
    peer_close(&first);
    peer_close(&second);
    peer_close(&third);
    peer_close(&caller);
    fixture_close(&fixture);
}
END_TEST

/* Rival: the connected one is silent, loses its calls and its place. */
START_TEST(test_rival_of_a_silent_adapter)
{
    struct fixture fixture;
    struct peer first, second, caller;
    uint64_t id;

    fixture_open(&fixture, mock, NULL);
    peer_as_adapter(&first, &fixture, "mock");
    first.mute = true;
    peer_as_caller(&caller, &fixture);
    peer_call(&caller, 1, "sandbox::exec", "{}");
    id = peer_expect_call(&first, "exec");
    peer_dial(&second, &fixture);
    peer_hello(&second, "adapter", "mock", (struct contract_version){ 1, 2 });
    peer_expect_answer(&caller, ENVELOPE_ERROR, 1, "may_have_run");
    peer_expect(&second, ENVELOPE_WELCOME);
    TURN_UNTIL(fixture.loop, first.closed);
    peer_answer(&first, ENVELOPE_REPLY, id, "\"late\"");
    peer_call(&caller, 2, "sandbox::list", "{}");
    peer_answer(&second, ENVELOPE_REPLY, peer_expect_call(&second, "list"), "[]");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 2, "[]");
    peer_close(&first);
    peer_close(&second);
    peer_close(&caller);
    fixture_close(&fixture);
}
END_TEST

/* Rival: the connected one goes while the rival waits, and the rival goes while it waits. */
START_TEST(test_rival_and_ends)
{
    struct fixture fixture;
    struct peer first, second;

    fixture_open(&fixture, mock, NULL);
    peer_as_adapter(&first, &fixture, "mock");
    first.mute = true;
    peer_dial(&second, &fixture);
    peer_hello(&second, "adapter", "mock", (struct contract_version){ 1, 2 });
    TURN_UNTIL(fixture.loop, fixture.native.greeting_count == 0);
    peer_close(&second);
    TURN_UNTIL(fixture.loop, fixture.native.peer_count == 1);
    peer_dial(&second, &fixture);
    peer_hello(&second, "adapter", "mock", (struct contract_version){ 2, 0 });
    TURN_UNTIL(fixture.loop, fixture.native.greeting_count == 0);
    peer_close(&first);
    peer_expect(&second, ENVELOPE_REFUSED);
    TURN_UNTIL(fixture.loop, fixture.router.binding.state == BINDING_MISMATCH);
    peer_close(&second);
    fixture_close(&fixture);
}
END_TEST

/* A stopped process sends no end of stream: PINGs without an answer are its end. */
START_TEST(test_silence)
{
    static const struct link_timing quick = { .ping_interval_ms = 40 };
    struct fixture fixture;
    struct peer adapter, caller;

    fixture_open(&fixture, mock, &quick);
    peer_as_adapter(&adapter, &fixture, "mock");
    peer_as_caller(&caller, &fixture);
    peer_call(&caller, 1, "sandbox::exec", "{}");
    turn_for(fixture.loop, 400); /* ten intervals: both answer */
    ck_assert(!adapter.closed);
    ck_assert(!caller.closed);
    adapter.mute = true;
    caller.mute = true; /* a caller on this machine may be stopped */
    peer_expect_answer(&caller, ENVELOPE_ERROR, 1, "may_have_run");
    TURN_UNTIL(fixture.loop, adapter.closed);
    ck_assert_int_eq(fixture.router.binding.state, BINDING_WAITING);
    turn_for(fixture.loop, 400);
    ck_assert(!caller.closed);
    peer_close(&adapter);
    peer_close(&caller);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_no_hello)
{
    static const struct link_timing quick = { .hello_timeout_ms = 40 };
    struct fixture fixture;
    struct peer peer;

    fixture_open(&fixture, mock, &quick);
    peer_dial(&peer, &fixture);
    TURN_UNTIL(fixture.loop, peer.closed);
    TURN_UNTIL(fixture.loop, fixture.native.peer_count == 0);
    peer_close(&peer);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_adapters_are_limited)
{
    struct fixture fixture;
    struct peer peers[ADAPTERS_MAX + 1];
    char name[16];

    fixture_open(&fixture, mock, NULL);
    for (unsigned i = 0; i < ADAPTERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "adapter-%u", i);
        peer_as_adapter(&peers[i], &fixture, name);
    }
    peer_dial(&peers[ADAPTERS_MAX], &fixture);
    peer_hello(&peers[ADAPTERS_MAX], "adapter", "more", (struct contract_version){ 1, 2 });
    TURN_UNTIL(fixture.loop, peers[ADAPTERS_MAX].closed);
    for (unsigned i = 0; i <= ADAPTERS_MAX; i++)
        peer_close(&peers[i]);
    fixture_close(&fixture);
}
END_TEST

/* Harm. The witness sees that nobody else is disturbed. */

static void expect_served(struct peer *caller)
{
    peer_call(caller, 4711, "sandbox::adapter::info", "{}");
    peer_expect_answer(caller, ENVELOPE_REPLY, 4711, "\"status\":\"waiting\"");
}

/* What a peer of ROLE ("" for none) sends; each must close it. */
static const struct harm {
    const char *role;
    const char *what;
    const char *bytes;
    size_t size;
} harms[] = {
#define HARM(role, what, text)                                                                 \
    {                                                                                          \
        role, what, text, sizeof(text) - 1                                                     \
    }
    HARM("", "nothing at all", ""),
    HARM("", "no msgpack", "GET / HTTP/1.1"),
    HARM("", "an array of 2^27 in five bytes", "\xdd\x08\x00\x00\x00"),
    HARM("", "a text of 4 GiB", "\x93\x00\xcf\0\0\0\0\0\0\0\0\xdb\xff\xff\xff\xff"),
    HARM("", "a call before the hello",
         "\x95\x03\xcf\0\0\0\0\0\0\0\1\xa3"
         "a::\xc0\xc4\2{}"),
    HARM("", "a hello without a map", "\x93\x00\xcf\0\0\0\0\0\0\0\0\xc0"),
    HARM("", "a hello of no role", "\x93\x00\xcf\0\0\0\0\0\0\0\0\x80"),
    HARM("caller", "an unknown kind", "\x92\x7f\xcf\0\0\0\0\0\0\0\1"),
    HARM("caller", "a second hello",
         "\x93\x00\xcf\0\0\0\0\0\0\0\0\x81\xa4role\xa6"
         "caller"),
    HARM("caller", "a reply", "\x93\x04\xcf\0\0\0\0\0\0\0\1\xc4\2{}"),
    HARM("caller", "a body of text", "\x95\x03\xcf\0\0\0\0\0\0\0\1\xa1x\xc0\xa2{}"),
    HARM("caller", "a cut call", "\x95\x03\xcf\0\0\0\0\0\0\0\1\xa1x\xc0"),
    HARM("caller", "bytes behind the message", "\x92\x07\xcf\0\0\0\0\0\0\0\1\xc0"),
    HARM("caller", "data for no stream", "\x93\x09\xcf\0\0\0\0\0\0\0\7\xc4\1x"),
    HARM("caller", "empty data", "\x93\x09\xcf\0\0\0\0\0\0\0\7\xc4\0"),
    HARM("caller", "credit for no stream", "\x93\x0a\xcf\0\0\0\0\0\0\0\7\x01"),
    HARM("caller", "a close of no stream", "\x93\x0b\xcf\0\0\0\0\0\0\0\7\xc0"),
    HARM("adapter", "a reply to no call", "\x93\x04\xcf\0\0\0\0\0\0\0\1\xc4\2{}"),
    HARM("adapter", "a cancel", "\x92\x07\xcf\0\0\0\0\0\0\0\1"),
    HARM("adapter", "a welcome", "\x93\x01\xcf\0\0\0\0\0\0\0\0\x80"),
#undef HARM
};

START_TEST(test_harm)
{
    struct fixture fixture;
    struct peer witness;

    fixture_open(&fixture, mock, NULL);
    peer_as_caller(&witness, &fixture);
    for (size_t i = 0; i < ARRAY_SIZE(harms); i++) {
        struct peer peer;

        if (harms[i].role[0] == 'c')
            peer_as_caller(&peer, &fixture);
        else if (harms[i].role[0] == 'a')
            peer_as_adapter(&peer, &fixture, "evil");
        else
            peer_dial(&peer, &fixture);
        ck_assert_int_eq(sp_send(peer.sp, harms[i].bytes, harms[i].size), 0);
        for (unsigned turns = 0; !peer.closed; turns++) {
            ck_assert_int_eq(loop_turn(fixture.loop, 1000), 0);
            ck_assert_msg(turns < 1000, "%s: not closed", harms[i].what);
        }
        expect_served(&witness);
        peer_close(&peer);
    }
    ck_assert_uint_eq(fixture.native.peer_count, 1);
    ck_assert_uint_eq(fixture.router.metrics.fronts[METRICS_FRONT_NATIVE].dropped,
                      ARRAY_SIZE(harms));
    peer_close(&witness);
    TURN_UNTIL(fixture.loop, fixture.native.peer_count == 0); /* it left: nothing dropped */
    ck_assert_uint_eq(fixture.router.metrics.fronts[METRICS_FRONT_NATIVE].dropped,
                      ARRAY_SIZE(harms));
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_oversize)
{
    struct fixture fixture;
    struct peer witness, peer;
    size_t size = 16u * 1024 * 1024 + 1;
    uint8_t *bytes = calloc(1, size);

    ck_assert_ptr_nonnull(bytes);
    fixture_open(&fixture, mock, NULL);
    peer_as_caller(&witness, &fixture);
    peer_as_caller(&peer, &fixture);
    ck_assert_int_eq(sp_send(peer.sp, bytes, size), 0);
    TURN_UNTIL(fixture.loop, peer.closed);
    peer_close(&peer);
    peer_dial(&peer, &fixture); /* and far less before the hello */
    ck_assert_int_eq(sp_send(peer.sp, bytes, 100000), 0);
    TURN_UNTIL(fixture.loop, peer.closed);
    peer_close(&peer);
    expect_served(&witness);
    free(bytes);
    peer_close(&witness);
    fixture_close(&fixture);
}
END_TEST

/* The router takes connections in this very loop: a full backlog wants a turn of it. */
static int raw_connect(const struct fixture *fixture)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/run/router.sock",
                   fixture->folder);
    ck_assert_int_ge(fd, 0);
    while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        ck_assert_int_eq(errno, EAGAIN);
        ck_assert_int_eq(loop_turn(fixture->loop, 1000), 0);
    }
    return fd;
}

/* Peers that leave before, within and behind the handshake; an ipc length of 2^62. */
START_TEST(test_abortive_connects)
{
    static const char handshake[] = "\0SP\0\0\x10\0\0\1\x40\0\0\0\0\0\0\0";
    struct fixture fixture;
    struct peer witness;

    fixture_open(&fixture, mock, NULL);
    peer_as_caller(&witness, &fixture);
    for (unsigned i = 0; i < 200; i++) {
        int fd = raw_connect(&fixture);
        size_t size = i % sizeof(handshake);

        ck_assert_int_eq(send(fd, handshake, size, MSG_NOSIGNAL), (ssize_t)size);
        ck_assert_int_eq(close(fd), 0);
        if (i % 50 == 0)
            expect_served(&witness);
    }
    expect_served(&witness);
    TURN_UNTIL(fixture.loop, fixture.native.peer_count == 1);
    peer_close(&witness);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_greetings_are_limited)
{
    static const struct link_timing quick = { .hello_timeout_ms = 500 };
    struct fixture fixture;
    struct peer witness;
    int fds[NATIVE_GREETING_MAX + 20];

    fixture_open(&fixture, mock, &quick);
    peer_as_caller(&witness, &fixture);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = raw_connect(&fixture);
        (void)loop_turn(fixture.loop, 0);
        ck_assert_uint_le(fixture.native.greeting_count, NATIVE_GREETING_MAX);
    }
    expect_served(&witness);
    TURN_UNTIL(fixture.loop, fixture.native.peer_count == 1);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        ck_assert_int_eq(close(fds[i]), 0);
    peer_close(&witness);
    fixture_close(&fixture);
}
END_TEST

/* The connection of a peer that came last. */
static struct native_peer *latest(struct fixture *fixture)
{
    return LIST_ENTRY(fixture->native.peers.previous, struct native_peer, node);
}

/* Peers that ask for ever and take no answer: what waits for them is bounded, and others are
 * served. */
START_TEST(test_askers_that_do_not_read)
{
    static const struct envelope questions[] = {
        { .kind = ENVELOPE_PING, .id = 1 },
        { .kind = ENVELOPE_OPEN,
          .id = 1,
          .channel_id = { .data = "none", .size = 4 },
          .access_key = { .data = "none", .size = 4 } },
        { .kind = ENVELOPE_CALL,
          .id = 1,
          .operation = { .data = "none::none", .size = 10 },
          .body = { .data = "{}", .size = 2 } },
    };
    const size_t most[] = { 2 * NATIVE_PONG_QUEUE_BYTES, BACKLOG_CONNECTION_BYTES + 4000000,
                            BACKLOG_CONNECTION_BYTES + 4000000 };

    for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
        struct fixture fixture;
        struct peer asker, witness;
        size_t queued = 0;

        fixture_open(&fixture, mock, NULL);
        peer_as_caller(&witness, &fixture);
        peer_as_caller(&asker, &fixture);
        sp_pause(asker.sp);
        for (unsigned turn = 0; turn < 400; turn++) {
            struct native_peer *peer = latest(&fixture);

            for (unsigned n = 0; n < 1000; n++)
                peer_send(&asker, &questions[i]);
            ck_assert_int_eq(loop_turn(fixture.loop, 0), 0);
            ck_assert_uint_eq(fixture.native.peer_count, 2);
            if (link_queued_bytes(peer->link) > queued)
                queued = link_queued_bytes(peer->link);
        }
        ck_assert_uint_gt(queued, 0);
        ck_assert_msg(queued <= most[i], "question %zu: %zu bytes wait", i, queued);
        expect_served(&witness);
        peer_close(&asker);
        peer_close(&witness);
        fixture_close(&fixture);
    }
}
END_TEST

/* Strangers of other hosts, without a certificate: they keep nobody of this machine out, and
 * the oldest of them goes for the next. */
START_TEST(test_strangers_of_other_hosts)
{
    char folder[] = "/tmp/unit-strangers.XXXXXX";
    char text[512];
    struct sockaddr_in address = { .sin_family = AF_INET };
    struct fixture fixture;
    struct peer witness;
    int fds[NATIVE_REMOTE_GREETING_MAX + 40];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(text, sizeof(text),
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                   "-days 2 -subj /CN=localhost -keyout %s/key -out %s/cert 2>/dev/null",
                   folder, folder);
    ck_assert_int_eq(system(text), 0);
    (void)snprintf(text, sizeof(text),
                   "%s  adapter_listen: tls+tcp://127.0.0.1:0\n"
                   "  tls: {cert: %s/cert, key: %s/key, ca: %s/cert}\n",
                   mock, folder, folder, folder);
    fixture_open(&fixture, text, NULL);
    address.sin_port = htons(stream_listener_port(fixture.native.tls));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        unsigned made = fixture.router.metrics.fronts[METRICS_FRONT_NATIVE].connections_made;

        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(fds[i], (struct sockaddr *)&address, sizeof(address)), 0);
        TURN_UNTIL(fixture.loop,
                   fixture.router.metrics.fronts[METRICS_FRONT_NATIVE].connections_made > made);
        ck_assert_uint_le(fixture.native.remote_greeting_count, NATIVE_REMOTE_GREETING_MAX);
    }
    TURN_UNTIL(fixture.loop, fixture.native.peer_count == NATIVE_REMOTE_GREETING_MAX);
    ck_assert_int_eq(recv(fds[39], text, 1, MSG_DONTWAIT), 0); /* the oldest ones are closed */
    ck_assert_int_eq(recv(fds[40], text, 1, MSG_DONTWAIT), -1);
    peer_as_caller(&witness, &fixture);
    expect_served(&witness);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        ck_assert_int_eq(close(fds[i]), 0);
    TURN_UNTIL(fixture.loop, fixture.native.remote_greeting_count == 0);
    peer_close(&witness);
    fixture_close(&fixture);
    (void)snprintf(text, sizeof(text), "rm -r %s", folder);
    ck_assert_int_eq(system(text), 0);
}
END_TEST

UNIT_MAIN("router.native_peer", test_askers_that_do_not_read, test_strangers_of_other_hosts,
          test_welcome, test_rival_of_a_living_adapter, test_rival_of_a_silent_adapter,
          test_rival_and_ends, test_silence, test_no_hello, test_adapters_are_limited,
          test_harm, test_oversize, test_abortive_connects, test_greetings_are_limited)
