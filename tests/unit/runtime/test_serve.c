/* test_serve.c - the link to the router: greeting, parking, liveness, loss and return. */
#include "fake_clock.h"
#include "fixture.h"
#include "serve.h"
#include "unit.h"

#include <errno.h>

static struct serve *serve(void)
{
    return adapter_serve(fixture.adapter);
}

static void listen_only(void)
{
    fixture_prepare("");
    fixture_start_adapter();
}

START_TEST(test_hello)
{
    struct message *hello;

    fixture.features[0] = "worker";
    fixture_open("");
    fixture_drop_link();
    hello = fixture_next(ENVELOPE_HELLO);
    ck_assert(span_equals(hello->envelope.role, "adapter"));
    ck_assert(span_equals(hello->envelope.name, "sandbox-test"));
    ck_assert(span_equals(hello->envelope.version, "7.8.9"));
    ck_assert(hello->envelope.has_contract);
    ck_assert_uint_eq(hello->envelope.contract.major, CONTRACT_MAJOR);
    ck_assert_uint_eq(hello->envelope.contract.minor, CONTRACT_MINOR);
    ck_assert_uint_eq(hello->envelope.feature_count, 3);
    ck_assert(span_equals(hello->envelope.features[0], "idempotency"));
    ck_assert(span_equals(hello->envelope.features[1], "exec_stream"));
    ck_assert(span_equals(hello->envelope.features[2], "worker"));
    ck_assert_uint_eq(hello->envelope.instance.size, 36);
    free(hello);
    fixture_close();
}
END_TEST

START_TEST(test_dials_until_a_router_is_there)
{
    listen_only();
    turn_for(fixture.loop, 300);
    ck_assert_uint_eq(serve_link(serve()), 0);
    fixture_welcome();
    ck_assert_uint_ne(serve_link(serve()), 0);
    ck_assert_str_eq(serve_docs_base(serve()), "https://docs.test/#");
    fixture_close();
}
END_TEST

START_TEST(test_comes_back_after_a_loss)
{
    uint64_t first;

    fixture_open("");
    first = serve_link(serve());
    fixture_drop_link();
    TURN_UNTIL(fixture.loop, serve_link(serve()) == 0);
    fixture_welcome();
    ck_assert_uint_ne(serve_link(serve()), first);
    fixture_call(1, "adapter::info", "{}");
    free(fixture_answer(1));
    fixture_close();
}
END_TEST

START_TEST(test_parked_still_tells_its_version)
{
    listen_only();
    fixture_welcome();
    fixture_drop_link();
    free(fixture_next(ENVELOPE_HELLO));
    fixture_send(&(struct envelope){ .kind = ENVELOPE_REFUSED,
                                     .code = span_of_text("S302"),
                                     .message = span_of_text("upgrade") });
    fixture_call(5, "adapter::info", "{}");
    fixture_expect_reply(
        5, "{\"adapter\":\"sandbox-test\",\"adapter_version\":\"7.8.9\","
           "\"contract\":{\"major\":1,\"minor\":2},"
           "\"features\":[\"idempotency\",\"exec_stream\"],\"acceleration\":\"none\"}");
    fixture_close();
}
END_TEST

START_TEST(test_answers_ping)
{
    struct message *pong;

    fixture_open("");
    fixture_send(&(struct envelope){ .kind = ENVELOPE_PING, .id = 77 });
    pong = fixture_next(ENVELOPE_PONG);
    ck_assert_uint_eq(pong->envelope.id, 77);
    free(pong);
    fixture_close();
}
END_TEST

static unsigned count_pings(void)
{
    unsigned pings = 0;

    LIST_FOREACH(node, &fixture.messages)
    pings += LIST_ENTRY(node, struct message, node)->envelope.kind == ENVELOPE_PING;
    return pings;
}

START_TEST(test_silent_router_is_lost)
{
    fixture_open("");
    fake_clock_pass(fixture.loop, SERVE_PING_MS - 500);
    ck_assert_uint_eq(count_pings(), 0);
    fake_clock_pass(fixture.loop, 600);
    TURN_UNTIL(fixture.loop, count_pings() == 1);
    fake_clock_pass(fixture.loop, SERVE_PING_MS);
    TURN_UNTIL(fixture.loop, count_pings() == 2);
    ck_assert_uint_ne(serve_link(serve()), 0);
    fake_clock_pass(fixture.loop, SERVE_PING_MS);
    ck_assert_uint_eq(serve_link(serve()), 0);
    fixture_close();
    fake_clock_reset();
}
END_TEST

START_TEST(test_any_message_shows_life)
{
    fixture_open("");
    for (int i = 0; i < 6; i++) {
        fake_clock_pass(fixture.loop, 2 * SERVE_PING_MS);
        fixture_send(&(struct envelope){ .kind = ENVELOPE_PONG });
        turn_for(fixture.loop, 20);
    }
    ck_assert_uint_ne(serve_link(serve()), 0);
    fixture_close();
    fake_clock_reset();
}
END_TEST

/* Each is a breach that ends the connection; the adapter lives on and returns. */
static const struct envelope breaches[] = {
    { .kind = ENVELOPE_HELLO, .role = { "router", 6 }, .name = { "x", 1 } },
    { .kind = ENVELOPE_REPLY, .id = 4711, .body = { "{}", 2 } },
    { .kind = ENVELOPE_DATA, .id = 4711, .body = { "x", 1 } },
    { .kind = ENVELOPE_OPEN, .id = 1, .channel_id = { "a", 1 }, .access_key = { "b", 1 } },
    { .kind = ENVELOPE_WELCOME, .max_message_bytes = 1, .docs_base = { "#", 1 } },
};

START_TEST(test_breach_ends_the_connection)
{
    fixture_open("");
    fixture_send(&breaches[_i]);
    TURN_UNTIL(fixture.loop, serve_link(serve()) == 0);
    fixture_welcome();
    fixture_close();
}
END_TEST

START_TEST(test_garbage_ends_the_connection)
{
    static const uint8_t garbage[] = { 0xdd, 0x07, 0xff, 0xff, 0xff };

    fixture_open("");
    ck_assert_int_eq(sp_send(fixture.link, garbage, sizeof(garbage)), 0);
    TURN_UNTIL(fixture.loop, serve_link(serve()) == 0);
    fixture_welcome();
    fixture_close();
}
END_TEST

START_TEST(test_call_before_the_welcome)
{
    listen_only();
    fixture_welcome();
    fixture_drop_link();
    free(fixture_next(ENVELOPE_HELLO));
    fixture_call(1, "adapter::info", "{}");
    TURN_UNTIL(fixture.loop, !fixture.link);
    fixture_expect_none(ENVELOPE_REPLY);
    fixture_close();
}
END_TEST

START_TEST(test_message_too_small_for_any_output)
{
    listen_only();
    fixture_welcome();
    fixture_drop_link();
    free(fixture_next(ENVELOPE_HELLO));
    fixture_send(&(struct envelope){ .kind = ENVELOPE_WELCOME,
                                     .docs_base = span_of_text("#"),
                                     .has_contract = true,
                                     .contract = { 1, 2 },
                                     .max_message_bytes = 1 << 20 });
    TURN_UNTIL(fixture.loop, !fixture.link);
    ck_assert_uint_eq(serve_link(serve()), 0);
    fixture_close();
}
END_TEST

START_TEST(test_unread_queue_is_bounded)
{
    static char body[4 << 20];
    uint64_t link;
    int ret = 0;

    fixture_open("");
    link = serve_link(serve());
    sp_pause(fixture.link);
    for (int i = 0; i < 64 && ret == 0; i++)
        ret = serve_send_body(serve(), link, ENVELOPE_EVENT, 1, body, sizeof(body));
    ck_assert_int_eq(ret, -ENOTCONN);
    ck_assert_uint_ne(serve_link(serve()), 0); /* not from inside the send */
    TURN_UNTIL(fixture.loop, serve_link(serve()) == 0);
    fixture_drop_link();
    fixture_welcome();
    fixture_close();
}
END_TEST

UNIT_MAIN_ROWS("serve", UNIT_TEST(test_hello), UNIT_TEST(test_dials_until_a_router_is_there),
               UNIT_TEST(test_comes_back_after_a_loss),
               UNIT_TEST(test_parked_still_tells_its_version), UNIT_TEST(test_answers_ping),
               UNIT_TEST(test_silent_router_is_lost), UNIT_TEST(test_any_message_shows_life),
               UNIT_ROWS(test_breach_ends_the_connection, breaches),
               UNIT_TEST(test_garbage_ends_the_connection),
               UNIT_TEST(test_call_before_the_welcome),
               UNIT_TEST(test_message_too_small_for_any_output),
               UNIT_TEST(test_unread_queue_is_bounded))
