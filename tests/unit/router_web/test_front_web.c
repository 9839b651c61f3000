/* The front over real sockets: requests, the handshake, closing, limits, the end. */
#include "web_fixture.h"

#include <stdio.h>

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE                                                                                \
    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"               \
    "Sec-WebSocket-Version: 13\r\n" KEY

static void connect_client(struct web_client *client)
{
    client_connect(client, fixture.loop, fixture.port);
}

static const char *ask(struct web_client *client, const char *request)
{
    connect_client(client);
    client_send(client, request);
    return client_read_all(client);
}

START_TEST(health)
{
    struct web_client client;

    ck_assert_str_eq(ask(&client, "GET /healthz HTTP/1.1\r\nHost: [::1]:1\r\n\r\n"),
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     "Content-Length: 33\r\nConnection: close\r\n\r\n"
                     "{\"status\":\"ok\",\"adapter\":\"bound\"}");
    client_close(&client);
}
END_TEST

START_TEST(metrics)
{
    struct web_client client;
    const char *answer = ask(&client, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");

    ck_assert_ptr_nonnull(strstr(answer, "200 OK"));
    ck_assert_ptr_nonnull(strstr(answer, "\r\n\r\nsandbox_fake 1\n"));
    client_close(&client);
}
END_TEST

START_TEST(refusals_reach_the_client)
{
    static const struct {
        const char *request;
        const char *begins;
    } cases[] = {
        { "GET /x HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 Not Found\r\n" },
        { "GET / HTTP/1.1\nHost: x\n\n", "HTTP/1.1 400 Bad Request\r\n" },
        { "GET / HTTP/1.1\r\nHost: x\r\nOrigin: null\r\n\r\n", "HTTP/1.1 403 Forbidden\r\n" },
        { "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 426 Upgrade Required\r\n" },
        { "PUT / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\n" },
        { "GET /ws/channels/a?key=b&dir=read HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
          "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY "\r\n",
          "HTTP/1.1 404 Not Found\r\n" },
    };
    struct web_client client;
    const char *answer = ask(&client, cases[_i].request);

    ck_assert_msg(strncmp(answer, cases[_i].begins, strlen(cases[_i].begins)) == 0, "%s",
                  answer);
    client_close(&client);
}
END_TEST

START_TEST(a_head_that_is_too_long_is_answered_while_more_comes)
{
    struct web_client client;
    char text[20000];

    connect_client(&client);
    memset(text, 'a', sizeof(text));
    client_send_bytes(&client, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(client_read_until(&client, "8 KiB\n"), "HTTP/1.1 431 "));
    client_close(&client);
}
END_TEST

START_TEST(everything_byte_by_byte)
{
    struct web_client client;
    struct buf bytes = { 0 };
    const char *answer;

    ck_assert_int_eq(buf_append_text(&bytes, UPGRADE "\r\n"), 0);
    ck_assert_int_eq(websocket_frame_append(&bytes, WEBSOCKET_CLIENT, WEBSOCKET_TEXT,
                                            "{\"type\":\"ping\"}", 15),
                     0);
    connect_client(&client);
    for (size_t i = 0; i < bytes.size; i++) {
        client_send_bytes(&client, bytes.data + i, 1);
        ck_assert_int_eq(loop_turn(fixture.loop, 0), 0);
    }
    (void)client_read_until(&client, "\r\n\r\n");
    answer = client_expect_text(&client);
    ck_assert_ptr_nonnull(strstr(answer, "\"worker_id\":\""));
    ck_assert_ptr_nonnull(strstr(answer, "\"reattach_token\":\""));
    ck_assert_str_eq(client_expect_text(&client), "{\"type\":\"pong\"}");
    client_close(&client);
    buf_done(&bytes);
}
END_TEST

START_TEST(bytes_behind_the_head_are_frames)
{
    struct web_client client;
    struct buf bytes = { 0 };

    ck_assert_int_eq(buf_append_text(&bytes, UPGRADE "\r\n"), 0);
    ck_assert_int_eq(websocket_frame_append(&bytes, WEBSOCKET_CLIENT, WEBSOCKET_PING, "a", 1),
                     0);
    connect_client(&client);
    client_send_bytes(&client, bytes.data, bytes.size);
    (void)client_read_until(&client, "\r\n\r\n");
    (void)client_expect_text(&client);
    ck_assert_int_eq(client_next(&client).kind, WEBSOCKET_EVENT_PONG);
    client_close(&client);
    buf_done(&bytes);
}
END_TEST

START_TEST(pings_are_answered)
{
    struct web_client client;
    struct websocket_event event;

    fixture_main(&client);
    client_frame(&client, WEBSOCKET_PING, "payload", 7);
    event = client_next(&client);
    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_PONG);
    ck_assert_mem_eq(event.data, "payload", 7);
    client_close(&client);
}
END_TEST

START_TEST(close_frames_are_answered_and_tcp_ends)
{
    struct web_client client;
    struct websocket_event event;
    unsigned code = _i == 0 ? WEBSOCKET_CLOSE_NONE : 4000;
    uint8_t payload[WEBSOCKET_CONTROL_MAX_BYTES];

    client_open(&client, fixture.loop, fixture.port, _i < 2 ? "/" : "/otel");
    if (_i < 2)
        (void)client_expect_text(&client);
    client_frame(&client, WEBSOCKET_CLOSE, payload, websocket_close_payload(code, "", payload));
    event = client_next(&client);
    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_CLOSE);
    ck_assert_uint_eq(event.code, code);
    (void)client_read_all(&client);
    client_idle(&client);
    ck_assert_uint_eq(front_web_connections(fixture.front), 0);
    client_close(&client);
}
END_TEST

START_TEST(breaches_are_named)
{
    static const struct {
        const char *bytes;
        size_t size;
        unsigned code;
    } cases[] = {
        { "\x81\x01x", 3, 1002 },
        { "\x81\x81\0\0\0\0\xFF", 7, 1007 },
        { "\x82\xFF\0\0\0\0\x01\0\0\x01", 10, 1009 },
    };
    struct web_client client;

    fixture_main(&client);
    client_send_bytes(&client, cases[_i].bytes, cases[_i].size);
    if (cases[_i].code == 1009)
        client_send_bytes(&client, "\0\0\0\0", 4); /* the mask: the length alone decides */
    client_expect_close(&client, cases[_i].code);
    client_close(&client);
}
END_TEST

START_TEST(telemetry_is_thrown_away)
{
    struct web_client client;
    uint8_t *megabyte = calloc(1, 1024 * 1024);

    client_open(&client, fixture.loop, fixture.port, "/otel");
    for (int i = 0; i < 20; i++)
        client_frame(&client, WEBSOCKET_BINARY, megabyte, 1024 * 1024);
    client_frame(&client, WEBSOCKET_PING, "", 0);
    ck_assert_int_eq(client_next(&client).kind, WEBSOCKET_EVENT_PONG);
    client_close(&client);
    free(megabyte);
}
END_TEST

START_TEST(a_lost_client_is_forgotten)
{
    struct web_client client;

    fixture_main(&client);
    ck_assert_uint_eq(front_web_connections(fixture.front), 1);
    client_close(&client);
    client.loop = fixture.loop;
    client_idle(&client);
    ck_assert_uint_eq(front_web_connections(fixture.front), 0);
    ck_assert_uint_eq(fake_route.gone, 1);
}
END_TEST

START_TEST(too_many_without_a_request)
{
    static struct web_client clients[WEB_GREETING_MAX + 1];
    struct web_client *last = &clients[WEB_GREETING_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
        connect_client(&clients[i]);
        ck_assert_int_eq(loop_turn(fixture.loop, 1), 0);
    }
    ck_assert_ptr_nonnull(strstr(client_read_all(last), "HTTP/1.1 503 Service Unavailable"));
    client_close(&clients[0]);
    client_idle(last);
    client_close(last);
    connect_client(last);
    client_send(last, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(client_read_all(last), "HTTP/1.1 200 OK"));
    for (size_t i = 1; i < ARRAY_SIZE(clients); i++)
        client_close(&clients[i]);
}
END_TEST

static void on_stopped(void *ctx)
{
    *(bool *)ctx = true;
}

START_TEST(stopping_says_so)
{
    struct web_client client, waiting;
    bool stopped = false;

    fixture_main(&client);
    connect_client(&waiting);
    client_idle(&waiting);
    front_web_stop(fixture.front, on_stopped, &stopped);
    client_expect_close(&client, WEBSOCKET_CLOSE_GOING_AWAY);
    (void)client_read_all(&waiting);
    client_idle(&client);
    ck_assert(stopped);
    client_close(&client);
    client_close(&waiting);
}
END_TEST

START_TEST(stopping_waits_for_no_one_for_long)
{
    struct web_client client;
    bool stopped = false;
    int turns = 0;

    fixture_main(&client);
    front_web_stop(fixture.front, on_stopped, &stopped);
    while (!stopped) {
        ck_assert_int_lt(turns++, 400); /* 2 s; the close frame stays unanswered for 1 */
        ck_assert_int_eq(loop_turn(fixture.loop, 5), 0);
    }
    client_close(&client);
}
END_TEST

START_TEST(the_token_is_wanted)
{
    struct web_client client;

    ck_assert_ptr_nonnull(
        strstr(ask(&client, UPGRADE "\r\n"), "HTTP/1.1 401 Unauthorized\r\n"));
    client_close(&client);
    connect_client(&client);
    client_send(&client, UPGRADE "Authorization: Bearer " FIXTURE_TOKEN "\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(client_read_until(&client, "\r\n\r\n"), " 101 "));
    client_close(&client);
}
END_TEST

START_TEST(listening_beyond_loopback_needs_a_token)
{
    static char *everywhere[] = { "0.0.0.0:0" };
    char error[FRONT_WEB_ERROR_MAX];
    struct front_web *front;

    fixture.settings.router.listen.items = everywhere;
    ck_assert_int_eq(front_web_new(&fixture.router, &front, error), -1);
    ck_assert_ptr_nonnull(strstr(error, "auth_token_file"));
}
END_TEST

START_TEST(a_port_in_use_is_named)
{
    char address[32];
    char *addresses[] = { address };
    char error[FRONT_WEB_ERROR_MAX];
    struct front_web *front;

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", fixture.port);
    fixture.settings.router.listen.items = addresses;
    ck_assert_int_eq(front_web_new(&fixture.router, &front, error), -1);
    ck_assert_ptr_nonnull(strstr(error, address));
}
END_TEST

START_TEST(loopback_addresses)
{
    ck_assert(web_address_is_loopback("127.0.0.1:1"));
    ck_assert(web_address_is_loopback("127.9.9.9:1"));
    ck_assert(web_address_is_loopback("[::1]:1"));
    ck_assert(web_address_is_loopback("localhost:1"));
    ck_assert(!web_address_is_loopback("0.0.0.0:1"));
    ck_assert(!web_address_is_loopback("[::]:1"));
    ck_assert(!web_address_is_loopback("10.0.0.1:1"));
    ck_assert(!web_address_is_loopback("localhost.example.com:1"));
    ck_assert(!web_address_is_loopback(":1"));
    ck_assert(!web_address_is_loopback(""));
}
END_TEST

static TCase *tests_of_the_front(void)
{
    TCase *tests = tcase_create("front");

    tcase_add_checked_fixture(tests, fixture_open, fixture_close);
    tcase_add_test(tests, health);
    tcase_add_test(tests, metrics);
    tcase_add_loop_test(tests, refusals_reach_the_client, 0, 6);
    tcase_add_test(tests, a_head_that_is_too_long_is_answered_while_more_comes);
    tcase_add_test(tests, everything_byte_by_byte);
    tcase_add_test(tests, bytes_behind_the_head_are_frames);
    tcase_add_test(tests, pings_are_answered);
    tcase_add_loop_test(tests, close_frames_are_answered_and_tcp_ends, 0, 3);
    tcase_add_loop_test(tests, breaches_are_named, 0, 3);
    tcase_add_test(tests, telemetry_is_thrown_away);
    tcase_add_test(tests, a_lost_client_is_forgotten);
    tcase_add_test(tests, too_many_without_a_request);
    tcase_add_test(tests, stopping_says_so);
    tcase_add_test(tests, stopping_waits_for_no_one_for_long);
    tcase_add_test(tests, listening_beyond_loopback_needs_a_token);
    tcase_add_test(tests, a_port_in_use_is_named);
    tcase_add_test(tests, loopback_addresses);
    return tests;
}

static TCase *tests_with_a_token(void)
{
    TCase *tests = tcase_create("token");

    tcase_add_checked_fixture(tests, fixture_open_with_token, fixture_close);
    tcase_add_test(tests, the_token_is_wanted);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("front_web");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tests_of_the_front());
    suite_add_tcase(suite, tests_with_a_token());
    suite_add_tcase(suite, tests_of_calls());
    suite_add_tcase(suite, tests_of_channels());
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
