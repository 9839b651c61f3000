/* test_route.c - who answers which name (contract 1), and the decision table (contract 2.3). */
#include "fixture.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static const char mock[] = "  adapter: mock\n";

static bool has_side_effects(const struct operation *operation)
{
    return operation->flags & SIDE_EFFECTS;
}

/* Every operation of the table: CODE, and the outcome exactly where contract 3.4 wants it. */
static void expect_code_for_all(struct fixture *fixture, const char *code, const char *outcome)
{
    struct peer caller;
    char function[64];

    peer_as_caller(&caller, fixture);
    for (unsigned i = 0; i < OP_MAX; i++) {
        struct received *received;
        char text[4096];

        if (operations[i].id == OP_adapter_info)
            continue;
        (void)snprintf(function, sizeof(function), "sandbox::%s", operations[i].name);
        peer_call(&caller, i, function, "{}");
        received = peer_take(&caller, ENVELOPE_ERROR);
        ck_assert_uint_eq(received->envelope.id, i);
        (void)snprintf(text, sizeof(text), "%.*s", (int)received->envelope.body.size,
                       received->envelope.body.data);
        ck_assert_msg(strstr(text, code) != NULL, "%s: %s", function, text);
        if (outcome && has_side_effects(&operations[i]))
            ck_assert_msg(strstr(text, outcome) != NULL, "%s: %s", function, text);
        else
            ck_assert_msg(strstr(text, "\"outcome\"") == NULL, "%s: %s", function, text);
        free(received);
    }
    peer_close(&caller);
}

START_TEST(test_row_1_none_configured)
{
    struct fixture fixture;
    struct peer adapter;

    fixture_open(&fixture, "", NULL);
    expect_code_for_all(&fixture, "\"S303\"", NULL);
    peer_as_adapter(&adapter, &fixture, "mock"); /* connected, but not configured */
    expect_code_for_all(&fixture, "\"S303\"", NULL);
    ck_assert_str_eq(route_status(&fixture.router), "none");
    peer_close(&adapter);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_row_2_not_connected)
{
    struct fixture fixture;
    struct peer greeting, other, adapter;

    fixture_open(&fixture, mock, NULL);
    expect_code_for_all(&fixture, "\"S301\"", "\"outcome\":\"never_ran\"");
    peer_dial(&greeting, &fixture); /* connected, no hello yet */
    peer_as_adapter(&other, &fixture, "another");
    expect_code_for_all(&fixture, "\"S301\"", "\"outcome\":\"never_ran\"");
    ck_assert_str_eq(route_status(&fixture.router), "waiting");

    peer_as_adapter(&adapter, &fixture, "mock");
    ck_assert_str_eq(route_status(&fixture.router), "bound");
    peer_close(&adapter);
    TURN_UNTIL(fixture.loop, fixture.router.binding.state == BINDING_WAITING);
    expect_code_for_all(&fixture, "is not connected: its connection was lost",
                        "\"outcome\":\"never_ran\"");
    peer_dial(&adapter, &fixture);
    peer_send(&adapter, &(struct envelope){ .kind = ENVELOPE_HELLO,
                                            .role = span_of_text("adapter"),
                                            .name = span_of_text("mock"),
                                            .version = span_of_text("7") });
    TURN_UNTIL(fixture.loop, adapter.closed);
    peer_close(&adapter);
    expect_code_for_all(&fixture, "is not connected: it was refused: hello: an adapter needs",
                        "\"outcome\":\"never_ran\"");
    peer_close(&other);
    peer_close(&greeting);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_row_3_major_differs)
{
    static const struct {
        uint32_t major;
        const char *text;
    } rows[] = {
        { 2, "mock speaks contract 2.0, this router 1.2: upgrade the router" },
        { 0, "mock speaks contract 0.0, this router 1.2: upgrade the adapter" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct fixture fixture;
        struct peer adapter, caller;

        fixture_open(&fixture, mock, NULL);
        peer_dial(&adapter, &fixture);
        peer_hello(&adapter, "adapter", "mock", (struct contract_version){ rows[i].major, 0 });
        peer_expect(&adapter, ENVELOPE_REFUSED);
        expect_code_for_all(&fixture, "\"S302\"", NULL);
        ck_assert_str_eq(route_status(&fixture.router), "mismatch");

        peer_as_caller(&caller, &fixture);
        peer_call(&caller, 1, "sandbox::list", "{}");
        peer_expect_answer(&caller, ENVELOPE_ERROR, 1, rows[i].text);
        peer_call(&caller, 2, "mock::list", "{}");
        peer_expect_answer(&caller, ENVELOPE_ERROR, 2, rows[i].text);

        /* Parked, not gone: it can still say who it is. */
        peer_call(&caller, 3, "mock::adapter::info", "{}");
        peer_answer(&adapter, ENVELOPE_REPLY, peer_expect_call(&adapter, "adapter::info"),
                    "{\"adapter\":\"mock\"}");
        peer_expect_answer(&caller, ENVELOPE_REPLY, 3, "{\"adapter\":\"mock\"}");
        ck_assert_uint_eq(adapter.received_count, 2); /* REFUSED and that call */
        peer_close(&caller);
        peer_close(&adapter);
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(test_row_4_forward)
{
    struct fixture fixture;
    struct peer adapter, caller;
    char function[64];

    fixture_open(&fixture, mock, NULL);
    peer_dial(&adapter, &fixture);
    peer_hello(&adapter, "adapter", "mock", (struct contract_version){ 1, 7 });
    peer_expect(&adapter, ENVELOPE_WELCOME); /* another minor is no error */
    peer_as_caller(&caller, &fixture);
    for (unsigned i = 0; i < OP_MAX; i++) {
        if (operations[i].id == OP_adapter_info)
            continue;
        (void)snprintf(function, sizeof(function), "sandbox::%s", operations[i].name);
        peer_call(&caller, i, function, "{}");
        peer_answer(&adapter, ENVELOPE_REPLY, peer_expect_call(&adapter, operations[i].name),
                    "{\"ok\":1}");
        peer_expect_answer(&caller, ENVELOPE_REPLY, i, "{\"ok\":1}");
    }
    peer_close(&caller);
    peer_close(&adapter);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_names)
{
    static const char *const unknown[] = {
        "sandbox::nope", "sandbox::",    "sandbox",       "",
        "::list",        "nobody::list", "engine::nope",  "engine::log::infos",
        "list",          "sandbox:list", "Sandbox::list",
    };
    struct fixture fixture;
    struct peer mocker, other, caller;

    fixture_open(&fixture, mock, NULL);
    peer_as_caller(&caller, &fixture);
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
        peer_call(&caller, i, unknown[i], "{}");
        peer_expect_answer(&caller, ENVELOPE_ERROR, i, "\"function_not_found\"");
    }
    peer_call(&caller, 100, "mock::list", "{}"); /* configured, not connected */
    peer_expect_answer(&caller, ENVELOPE_ERROR, 100, "\"S301\"");
    peer_call(&caller, 101, "mock::exec", "{}");
    peer_expect_answer(&caller, ENVELOPE_ERROR, 101, "\"never_ran\"");

    peer_as_adapter(&mocker, &fixture, "mock");
    peer_as_adapter(&other, &fixture, "other");
    peer_call(&caller, 102, "other::list", "{}"); /* connected, not bound */
    peer_answer(&other, ENVELOPE_REPLY, peer_expect_call(&other, "list"), "[]");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 102, "[]");
    peer_call(&caller, 103, "mock::in::no::table", "{}"); /* the adapter's to refuse */
    peer_answer(&mocker, ENVELOPE_ERROR, peer_expect_call(&mocker, "in::no::table"),
                "{\"code\":\"S304\"}");
    peer_expect_answer(&caller, ENVELOPE_ERROR, 103, "S304");
    peer_close(&other);
    peer_close(&mocker);
    peer_close(&caller);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_info)
{
    struct fixture fixture;
    struct peer adapter, caller;

    fixture_open(&fixture, "", NULL);
    peer_as_caller(&caller, &fixture);
    peer_call(&caller, 1, "sandbox::adapter::info", "{}");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 1,
                       "{\"adapter\":null,\"namespace\":\"default\",\"contract\":{\"major\":1,"
                       "\"minor\":2},\"info\":null,\"status\":\"none\"}");
    fixture_reload(&fixture, mock);
    peer_call(&caller, 2, "sandbox::adapter::info", "{}");
    peer_expect_answer(
        &caller, ENVELOPE_REPLY, 2,
        "{\"adapter\":\"mock\",\"namespace\":\"default\",\"contract\":{\"major\":1,"
        "\"minor\":2},\"info\":null,\"status\":\"waiting\"}");

    peer_as_adapter(&adapter, &fixture, "mock");
    peer_call(&caller, 3, "sandbox::adapter::info", "{}");
    peer_answer(&adapter, ENVELOPE_REPLY, peer_expect_call(&adapter, "adapter::info"),
                "{\"odd\" : [1.50, \"\\u00e9\"]}");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 3,
                       "\"info\":{\"odd\" : [1.50, \"\\u00e9\"]},\"status\":\"bound\"}");

    /* What is no object is none; an error is none. */
    peer_call(&caller, 4, "sandbox::adapter::info", "{}");
    peer_answer(&adapter, ENVELOPE_REPLY, peer_expect_call(&adapter, "adapter::info"),
                "{}, \"status\":\"none\"");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 4, "\"info\":null,\"status\":\"bound\"}");
    peer_call(&caller, 5, "sandbox::adapter::info", "{}");
    peer_answer(&adapter, ENVELOPE_ERROR, peer_expect_call(&adapter, "adapter::info"), "{}");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 5, "\"info\":null,\"status\":\"bound\"}");

    /* Lost meanwhile. */
    peer_call(&caller, 6, "sandbox::adapter::info", "{}");
    (void)peer_expect_call(&adapter, "adapter::info");
    peer_close(&adapter);
    peer_expect_answer(&caller, ENVELOPE_REPLY, 6, "\"info\":null,\"status\":\"waiting\"}");
    peer_close(&caller);
    fixture_close(&fixture);
}
END_TEST

/* The one real wait of these tests: the limit of contract 13 is 2 s. */
START_TEST(test_info_of_a_silent_adapter)
{
    struct fixture fixture;
    struct peer adapter, caller;
    uint64_t start_ms, id;

    fixture_open(&fixture, mock, NULL);
    peer_as_adapter(&adapter, &fixture, "mock");
    peer_as_caller(&caller, &fixture);
    start_ms = loop_now_ms(fixture.loop);
    peer_call(&caller, 1, "sandbox::adapter::info", "{}");
    id = peer_expect_call(&adapter, "adapter::info");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 1, "\"info\":null,\"status\":\"bound\"}");
    ck_assert_uint_ge(loop_now_ms(fixture.loop) - start_ms, 1900);
    ck_assert_uint_le(loop_now_ms(fixture.loop) - start_ms, 4000);
    peer_expect(&adapter, ENVELOPE_CANCEL);
    peer_answer(&adapter, ENVELOPE_REPLY, id, "{}"); /* late, and dropped */
    peer_call(&caller, 2, "sandbox::list", "{}");
    peer_answer(&adapter, ENVELOPE_REPLY, peer_expect_call(&adapter, "list"), "[2]");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 2, "[2]");
    peer_close(&caller);
    peer_close(&adapter);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_channels_create)
{
    static const char *const wrong[] = { "[]",
                                         "{\"buffer_size\":0}",
                                         "{\"buffer_size\":1025}",
                                         "{\"buffer_size\":\"64\"}",
                                         "{\"buffer_size\":6.5}",
                                         "{",
                                         "nonsense" };
    static const char *const right[] = { "", "{}", "{\"buffer_size\":null}",
                                         "{\"buffer_size\":1024}", " {\"x\":1} " };
    struct fixture fixture;
    struct peer adapter, caller;

    fixture_open(&fixture, mock, NULL);
    peer_as_caller(&caller, &fixture);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        peer_call(&caller, i, "engine::channels::create", wrong[i]);
        peer_expect_answer(&caller, ENVELOPE_ERROR, i, "\"S001\"");
    }
    for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
        peer_call(&caller, i, "engine::channels::create", right[i]);
        peer_expect_answer(&caller, ENVELOPE_REPLY, i, "{\"writer\":{\"channel_id\":\"");
    }
    peer_as_adapter(&adapter, &fixture, "mock");
    peer_call(&adapter, 9, "engine::channels::create", "{\"buffer_size\":64}");
    peer_expect_answer(&adapter, ENVELOPE_REPLY, 9, "\"direction\":\"read\"");
    peer_call(&adapter, 10, "sandbox::list", "{}"); /* adapters call nothing else */
    peer_expect_answer(&adapter, ENVELOPE_ERROR, 10, "function_not_found");
    ck_assert_uint_eq(channel_set_count(fixture.router.channels), ARRAY_SIZE(right) + 1);
    peer_close(&adapter);
    peer_close(&caller);
    fixture_close(&fixture);
}
END_TEST

START_TEST(test_channels_limit)
{
    struct fixture fixture;
    struct channel_refs refs;
    struct peer caller;

    fixture_open(&fixture, mock, NULL);
    peer_as_caller(&caller, &fixture);
    while (channel_set_count(fixture.router.channels) < CHANNELS_MAX)
        ck_assert_int_eq(channel_create(fixture.router.channels, 0, &refs), 0);
    peer_call(&caller, 1, "engine::channels::create", "{}");
    peer_expect_answer(&caller, ENVELOPE_ERROR, 1, "\"S400\"");
    peer_close(&caller);
    fixture_close(&fixture);
}
END_TEST

UNIT_MAIN("router.route", test_row_1_none_configured, test_row_2_not_connected,
          test_row_3_major_differs, test_row_4_forward, test_names, test_info,
          test_info_of_a_silent_adapter, test_channels_create, test_channels_limit)
