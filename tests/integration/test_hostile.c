/* test_hostile.c - 5,000 connections of peers that mean harm, on both listeners at once: the
 * router serves all the time, and is afterwards as it was before. */
#include <string.h>

#include "raw_peer.h"
#include "trial.h"
#include "unit.h"

#define ATTACKS 5000
#define WARM_UP 1000    /* until heaps, slots and nng's pools have the size they keep */
#define SERVE_EVERY 250 /* a good caller's calls in between */
#define HELD 120        /* sockets left open: slow, half-open, silent ones */
#define RETURN_MS 20000 /* for the router to see the last end */
/* Freed blocks that the heap keeps: M_TRIM_THRESHOLD of the router is 8 MiB, of which a mixed
 * load leaves some. Leaks show as more: 5,000 connections that lost 1 KiB each would be 5 MiB.
 */
#define RSS_GROWTH_MAX (4u << 20)

/* Native. */

static void gone_at_once(int fd)
{
}

static void wrong_handshake(int fd)
{
    raw_send(fd, "\0SQ\0\0\x10\0\0", 8);
}

static void wrong_protocol(int fd)
{
    raw_send(fd, "\0SP\0\0\x30\0\0", 8);
}

static void half_a_handshake(int fd)
{
    raw_send(fd, "\0SP", 3);
}

static void huge_length(int fd)
{
    raw_handshake(fd);
    raw_frame(fd, 1ull << 62, "x", 1);
}

static void over_the_limit(int fd)
{
    raw_caller(fd);
    raw_frame(fd, (16ull << 20) + 1, "x", 1);
}

static void huge_array(int fd)
{
    raw_handshake(fd);
    raw_frame(fd, 5, "\xdd\x08\0\0\0", 5);
}

static void deep_arrays(int fd)
{
    static uint8_t deep[16384];

    memset(deep, 0x91, sizeof(deep));
    raw_handshake(fd);
    raw_frame(fd, sizeof(deep), deep, sizeof(deep));
}

static void deep_hello(int fd)
{
    uint8_t deep[4096];

    memset(deep, 0x81, sizeof(deep)); /* a map whose key is a map whose key ... */
    memcpy(deep, "\x93\0\xcf\0\0\0\0\0\0\0\0", 11);
    raw_handshake(fd);
    raw_frame(fd, sizeof(deep), deep, sizeof(deep));
}

static void half_a_message(int fd)
{
    raw_handshake(fd);
    raw_frame(fd, 200, "\x93\0\xcf\0\0\0\0\0\0\0\0\x86", 12);
}

static void garbage(int fd)
{
    uint8_t bytes[1500];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)random();
    raw_handshake(fd);
    raw_frame(fd, sizeof(bytes), bytes, sizeof(bytes));
}

static void never_opened(int fd)
{
    raw_caller(fd);
    raw_envelope(fd, &(struct envelope){ .kind = ENVELOPE_DATA, .id = 77, .body = { "x", 1 } });
}

static void answers_nobody_asked(int fd)
{
    raw_caller(fd);
    raw_envelope(fd,
                 &(struct envelope){ .kind = ENVELOPE_REPLY, .id = 1, .body = { "{}", 2 } });
}

static void a_call_and_gone(int fd)
{
    raw_caller(fd);
    raw_envelope(fd, &(struct envelope){ .kind = ENVELOPE_CALL,
                                         .id = 1,
                                         .operation = span_of_text("sandbox::list"),
                                         .deadline_ms = ENVELOPE_NO_DEADLINE,
                                         .body = { "{}", 2 } });
}

static void a_channel_and_gone(int fd)
{
    raw_caller(fd);
    raw_envelope(fd, &(struct envelope){ .kind = ENVELOPE_OPEN,
                                         .id = 1,
                                         .channel_id = span_of_text("x"),
                                         .access_key = span_of_text("y") });
}

static void reserved_name(int fd)
{
    struct envelope hello = native_caller_hello;

    hello.role = span_of_text("adapter");
    hello.name = span_of_text("engine");
    raw_handshake(fd);
    raw_envelope(fd, &hello);
}

/* Web. */

static void web_garbage(int fd)
{
    raw_text(fd, "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n");
}

static void web_long_head(int fd)
{
    char line[9000];

    memset(line, 'a', sizeof(line));
    raw_text(fd, "GET / HTTP/1.1\r\nHost: x\r\nX: ");
    raw_send(fd, line, sizeof(line));
}

static void web_half_a_head(int fd)
{
    raw_text(fd, "GET / HTTP/1.1\r\nHo");
}

static void web_escape(int fd)
{
    raw_text(fd, "GET /%41 HTTP/1.1\r\nHost: x\r\n\r\n");
}

static void web_smuggler(int fd)
{
    raw_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n");
}

static void web_pipelined(int fd)
{
    for (int i = 0; i < 20; i++)
        raw_text(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
}

static void web_unmasked(int fd)
{
    raw_upgrade(fd, "/");
    raw_send(fd, "\x81\x02{}", 4);
}

static void web_huge_frame(int fd)
{
    raw_upgrade(fd, "/");
    raw_websocket(fd, 0x81, 1ull << 62, "{", 1);
}

static void web_half_a_frame(int fd)
{
    raw_upgrade(fd, "/");
    raw_websocket(fd, 0x81, 1u << 20, "{\"type\":", 8);
}

static void web_fragments(int fd)
{
    raw_upgrade(fd, "/");
    raw_websocket(fd, 0x01, 1, "{", 1);
    for (int i = 0; i < 50; i++)
        raw_websocket(fd, 0x00, 0, "", 0);
    raw_websocket(fd, 0x81, 2, "{}", 2);
}

static void web_deep(int fd)
{
    static char deep[20000];

    memset(deep, '[', sizeof(deep));
    raw_upgrade(fd, "/");
    raw_websocket(fd, 0x81, sizeof(deep), deep, sizeof(deep));
}

static void web_not_utf8(int fd)
{
    raw_upgrade(fd, "/");
    raw_websocket(fd, 0x81, 3, "\xff\xfe\xfd", 3);
}

static void web_call_and_gone(int fd)
{
    static const char call[] = "{\"type\":\"invokefunction\",\"invocation_id\":\"1\","
                               "\"function_id\":\"sandbox::list\",\"data\":{}}";

    raw_upgrade(fd, "/");
    raw_websocket(fd, 0x81, sizeof(call) - 1, call, sizeof(call) - 1);
}

static void web_wrong_key(int fd)
{
    raw_upgrade(fd, "/ws/channels/6fd1?key=nope&dir=read");
}

static void web_bad_close(int fd)
{
    raw_upgrade(fd, "/");
    raw_websocket(fd, 0x88, 1, "x", 1);
}

static const struct attack {
    void (*play)(int fd);
    bool web;
    bool holds; /* left open, for as long as there is room */
} attacks[] = {
    { gone_at_once, false, false },
    { wrong_handshake, false, false },
    { wrong_protocol, false, true },
    { half_a_handshake, false, true },
    { huge_length, false, false },
    { over_the_limit, false, true },
    { huge_array, false, false },
    { deep_arrays, false, false },
    { deep_hello, false, false },
    { half_a_message, false, true },
    { garbage, false, false },
    { never_opened, false, false },
    { answers_nobody_asked, false, true },
    { a_call_and_gone, false, false },
    { a_channel_and_gone, false, true },
    { reserved_name, false, false },
    { gone_at_once, true, false },
    { web_garbage, true, false },
    { web_long_head, true, true },
    { web_half_a_head, true, true },
    { web_escape, true, false },
    { web_smuggler, true, false },
    { web_pipelined, true, false },
    { web_unmasked, true, true },
    { web_huge_frame, true, false },
    { web_half_a_frame, true, true },
    { web_fragments, true, false },
    { web_deep, true, false },
    { web_not_utf8, true, false },
    { web_call_and_gone, true, false },
    { web_wrong_key, true, true },
    { web_bad_close, true, true },
};

struct siege {
    struct trial trial;
    int held[HELD];
    unsigned next_held;
};

/* Each of the held ones goes when its place is wanted. */
static void hold(struct siege *siege, int fd)
{
    raw_abort(siege->held[siege->next_held]);
    siege->held[siege->next_held] = fd;
    siege->next_held = (siege->next_held + 1) % HELD;
}

static void release_all(struct siege *siege)
{
    for (size_t i = 0; i < HELD; i++) {
        raw_close(siege->held[i]);
        siege->held[i] = -1;
    }
}

static void attack_one(struct siege *siege)
{
    const struct attack *attack = &attacks[(size_t)random() % ARRAY_SIZE(attacks)];
    int fd = attack->web ? raw_web(siege->trial.router) : raw_native(siege->trial.router);

    attack->play(fd);
    if (attack->holds)
        hold(siege, fd);
    else if (random() % 2)
        raw_abort(fd);
    else
        raw_close(fd);
}

/* A good caller on each front. */
static void expect_service(struct siege *siege)
{
    _cleanup_free_ char *health = router_process_get(siege->trial.router, "/healthz");

    trial_expect_reply(&siege->trial, "sandbox::exec", "{\"n\":1}", "{\"n\":1}");
    ck_assert_ptr_nonnull(strstr(health, "200 OK"));
    ck_assert_ptr_nonnull(strstr(health, "\"adapter\":\"bound\""));
}

static void attack_many(struct siege *siege, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        attack_one(siege);
        if (i % SERVE_EVERY == 0)
            expect_service(siege);
    }
}

/* Exactly as many as before. Nothing tells a peer when the router has let go of a descriptor
 * (nng closes it on a thread of its own), so each look comes after a round trip through the
 * router. */
static void expect_descriptors(struct siege *siege, unsigned wanted)
{
    struct trial *trial = &siege->trial;
    uint64_t end_ms = trial_now_ms() + RETURN_MS;

    while (router_process_descriptors(trial->router) != wanted && trial_now_ms() < end_ms)
        ck_assert_int_eq(native_client_settle(trial->caller, TRIAL_WAIT_MS), 0);
    ck_assert_uint_eq(router_process_descriptors(trial->router), wanted);
}

START_TEST(test_siege)
{
    struct siege siege = { 0 };
    struct played_adapter *adapter;
    unsigned descriptors;
    size_t rss;

    srandom(20);
    memset(siege.held, -1, sizeof(siege.held));
    trial_open(&siege.trial, trial_unmanaged("one"));
    adapter = trial_adapter(&siege.trial, "one", NULL, NULL);
    router_process_await_bound(siege.trial.router, "one");
    /* Before the first request over HTTP: nothing is on its way out. */
    descriptors = router_process_descriptors(siege.trial.router);
    expect_service(&siege);
    attack_many(&siege, WARM_UP);
    release_all(&siege);
    expect_descriptors(&siege, descriptors);
    rss = router_process_rss_bytes(siege.trial.router);

    attack_many(&siege, ATTACKS);
    release_all(&siege);
    expect_descriptors(&siege, descriptors);
    expect_service(&siege);
    ck_assert_int_eq(trial_metric(&siege.trial, "sandbox_calls_unanswered"), 0);
    ck_assert_int_eq(trial_metric(&siege.trial, "sandbox_connections{front=\"native\"}"), 2);
    ck_assert_int_gt(
        trial_metric(&siege.trial, "sandbox_connections_dropped_total{front=\"native\"}"),
        ATTACKS / 8);
    if (!TRIAL_SANITIZED)
        ck_assert_msg(router_process_rss_bytes(siege.trial.router) <= rss + RSS_GROWTH_MAX,
                      "grew from %zu to %zu KiB", rss >> 10,
                      router_process_rss_bytes(siege.trial.router) >> 10);
    played_adapter_free(adapter);
    trial_close(&siege.trial);
}
END_TEST

UNIT_MAIN("hostile", test_siege)
