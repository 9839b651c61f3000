/* The main socket: frames in, calls to the route, answers out. */
#include "web_fixture.h"

#include <stdio.h>

#define RESULT                                                                                 \
    "{\"type\":\"invocationresult\",\"invocation_id\":\"i\",\"function_id\":\"sandbox::"       \
    "list\","

/* Waits until the route has got its Nth call. */
static struct fake_call *nth_call(size_t n)
{
    for (int turns = 0; fake_route.count < n; turns++) {
        ck_assert_int_lt(turns, 1000);
        ck_assert_int_eq(loop_turn(fixture.loop, 5), 0);
    }
    return &fake_route.calls[n - 1];
}

START_TEST(a_call_and_its_result)
{
    struct web_client client;
    struct fake_call *call;

    fixture_main(&client);
    client_text(&client,
                "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                "\"function_id\":\"sandbox::list\",\"data\":{ \"a\" : 1.50e0,\"a\":2}}");
    call = nth_call(1);
    ck_assert_str_eq(call->function, "sandbox::list");
    ck_assert_str_eq(call->body, "{ \"a\" : 1.50e0,\"a\":2}");
    ck_assert(!call->detached);
    ck_assert(!call->wants_events);
    fake_reply(call, "[{\"x\": 1.0}]");
    ck_assert_str_eq(client_expect_text(&client), RESULT "\"result\":[{\"x\": 1.0}]}");
    client_close(&client);
}
END_TEST

START_TEST(what_is_echoed)
{
    struct web_client client;
    struct fake_call *call;

    fixture_main(&client);
    client_text(&client,
                "{\"invocation_id\":\"\\u0069\\\"\",\"function_id\":\"sandbox::\\u006cist\","
                "\"traceparent\":\"00-\\u0061\",\"baggage\":\"b\",\"metadata\":{\"m\":1},"
                "\"namespace\":\"default\",\"action\":null,\"type\":\"invokefunction\"}");
    call = nth_call(1);
    ck_assert_str_eq(call->function, "sandbox::list");
    ck_assert_str_eq(call->body, "");
    ck_assert_str_eq(call->traceparent, "00-a");
    fake_reply(call, "null");
    ck_assert_str_eq(client_expect_text(&client),
                     "{\"type\":\"invocationresult\",\"invocation_id\":\"\\u0069\\\"\","
                     "\"function_id\":\"sandbox::\\u006cist\",\"traceparent\":\"00-\\u0061\","
                     "\"baggage\":\"b\",\"result\":null}");
    client_close(&client);
}
END_TEST

START_TEST(calls_end_in_any_order)
{
    struct web_client client;

    fixture_main(&client);
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                         "\"function_id\":\"sandbox::list\",\"data\":1}");
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                         "\"function_id\":\"sandbox::list\",\"data\":2}");
    fake_reply(nth_call(2), "2");
    fake_reply(nth_call(1), "1");
    ck_assert_str_eq(client_expect_text(&client), RESULT "\"result\":2}");
    ck_assert_str_eq(client_expect_text(&client), RESULT "\"result\":1}");
    client_close(&client);
}
END_TEST

static const char *answer_to_error(struct web_client *client, const char *envelope)
{
    fixture_main(client);
    client_text(client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                        "\"function_id\":\"sandbox::list\",\"data\":{}}");
    fake_error(nth_call(1), envelope);
    return client_expect_text(client);
}

START_TEST(an_envelope_in_the_one_form)
{
    struct web_client client;

    ck_assert_str_eq(
        answer_to_error(&client, "{\"code\":\"S211\",\"type\":\"filesystem\",\"message\":"
                                 "\"no \\\"x\\\"\",\"docs_url\":\"d#S211\",\"retryable\":false,"
                                 "\"fix\":{\"parents\":true},\"fix_note\":null,"
                                 "\"stacktrace\":null,\"partial\":{\"stdout\":\"o\"}}"),
        RESULT "\"error\":{\"code\":\"S211\",\"message\":"
               "\"{\\\"code\\\":\\\"S211\\\",\\\"type\\\":\\\"filesystem\\\",\\\"message\\\":"
               "\\\"no \\\\\\\"x\\\\\\\"\\\",\\\"docs_url\\\":\\\"d#S211\\\","
               "\\\"retryable\\\":false,\\\"fix\\\":{\\\"parents\\\":true},"
               "\\\"fix_note\\\":null,\\\"stacktrace\\\":null,"
               "\\\"partial\\\":{\\\"stdout\\\":\\\"o\\\"}}\","
               "\"type\":\"filesystem\",\"docs_url\":\"d#S211\",\"retryable\":false,"
               "\"fix\":{\"parents\":true},\"fix_note\":null}}");
    client_close(&client);
}
END_TEST

START_TEST(errors_that_are_no_envelope)
{
    static const struct {
        const char *body;
        const char *message;
    } cases[] = {
        { "oops", "\"oops\"" },
        { "[1]", "\"[1]\"" },
        { "{\"message\":\"m\"}", "\"{\\\"message\\\":\\\"m\\\"}\"" },
        { "{\"code\":5}", "\"{\\\"code\\\":5}\"" },
        { "", "\"\"" },
    };
    struct web_client client;
    char expected[300];

    (void)snprintf(expected, sizeof(expected),
                   RESULT "\"error\":{\"code\":\"invocation_failed\",\"message\":%s}}",
                   cases[_i].message);
    ck_assert_str_eq(answer_to_error(&client, cases[_i].body), expected);
    client_close(&client);
}
END_TEST

START_TEST(a_reply_that_is_no_json)
{
    struct web_client client;

    fixture_main(&client);
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                         "\"function_id\":\"sandbox::list\"}");
    fake_reply(nth_call(1), "{\"a\":\"\xFF\"}");
    ck_assert_ptr_nonnull(strstr(client_expect_text(&client), "\"invocation_failed\""));
    client_close(&client);
}
END_TEST

START_TEST(calls_that_nobody_waits_for)
{
    static const char *const frames[] = {
        "{\"type\":\"invokefunction\",\"function_id\":\"f\",\"data\":{}}",
        "{\"type\":\"invokefunction\",\"invocation_id\":null,\"function_id\":\"f\"}",
        ("{\"type\":\"invokefunction\",\"invocation_id\":\"i\",\"function_id\":\"f\","
         "\"action\":{\"type\":\"void\"}}"),
        "{\"type\":\"invokefunction\",\"function_id\":\"f\",\"action\":{\"type\":\"void\"}}",
    };
    struct web_client client;

    fixture_main(&client);
    client_text(&client, frames[_i]);
    ck_assert(nth_call(1)->detached);
    client_text(&client, "{\"type\":\"ping\"}");
    ck_assert_str_eq(client_expect_text(&client), "{\"type\":\"pong\"}");
    client_close(&client);
}
END_TEST

START_TEST(calls_that_are_refused)
{
    static const struct {
        const char *members;
        const char *code;
    } cases[] = {
        { "\"function_id\":\"f\",\"action\":{\"type\":\"enqueue\",\"queue\":\"q\"}",
          "enqueue_error" },
        { "\"function_id\":\"f\",\"action\":{\"type\":\"other\"}", "invocation_failed" },
        { "\"function_id\":\"f\",\"action\":\"void\"", "invocation_failed" },
        { "\"function_id\":\"f\",\"action\":{}", "invocation_failed" },
        { "\"data\":{}", "invocation_failed" },
        { "\"function_id\":5", "invocation_failed" },
        { "\"function_id\":\"\"", "invocation_failed" },
        { "\"function_id\":null", "invocation_failed" },
        { "\"function_id\":\"f\",\"namespace\":\"\"", "INVALID_NAMESPACE" },
        { "\"function_id\":\"f\",\"namespace\":\"  \"", "INVALID_NAMESPACE" },
        { "\"function_id\":\"f\",\"namespace\":1", "INVALID_NAMESPACE" },
        { "\"function_id\":\"f\",\"namespace\":\"other\"", "function_not_found" },
        { "\"function_id\":\"no\"", "function_not_found" },
        { "\"function_id\":\"engine::functions::info\",\"data\":{\"function_id\":\"f\"}",
          "function_not_found" },
    };
    struct web_client client;
    char text[400];
    const char *answer;

    fixture_main(&client);
    (void)snprintf(text, sizeof(text), "{\"type\":\"invokefunction\",%s}", cases[_i].members);
    client_text(&client, text); /* without an id there is no answer */
    (void)snprintf(text, sizeof(text),
                   "{\"type\":\"invokefunction\",\"invocation_id\":\"i\",%s}",
                   cases[_i].members);
    client_text(&client, text);
    answer = client_expect_text(&client);
    (void)snprintf(text, sizeof(text), "\"error\":{\"code\":\"%s\",\"message\":\"",
                   cases[_i].code);
    ck_assert_msg(strstr(answer, text) != NULL, "%s", answer);
    ck_assert_ptr_nonnull(strstr(answer, "\"invocation_id\":\"i\""));
    client_close(&client);
}
END_TEST

START_TEST(ids_that_are_too_long)
{
    struct web_client client;
    char name[WEB_ID_MAX_BYTES + 2] = "";
    char text[700];

    fixture_main(&client);
    memset(name, 'n', WEB_ID_MAX_BYTES + 1);
    (void)snprintf(
        text, sizeof(text),
        "{\"type\":\"invokefunction\",\"invocation_id\":\"%s\",\"function_id\":\"f\"}", name);
    client_text(&client, text);
    ck_assert_ptr_nonnull(strstr(client_expect_text(&client), "\"invocation_failed\""));
    (void)snprintf(
        text, sizeof(text),
        "{\"type\":\"invokefunction\",\"invocation_id\":\"i\",\"function_id\":\"%s\"}", name);
    client_text(&client, text);
    ck_assert_ptr_nonnull(strstr(client_expect_text(&client), "\"function_not_found\""));
    ck_assert_uint_eq(fake_route.count, 0);
    client_close(&client);
}
END_TEST

START_TEST(frames_that_are_ignored)
{
    static const char *const frames[] = {
        "nonsense",
        "[]",
        "{}",
        "{\"type\":\"INVOKEFUNCTION\"}",
        "{\"type\":\"invokefunction\",\"invocation_id\":5,\"function_id\":\"f\"}",
        "{\"type\":\"registertrigger\",\"id\":\"a\"}",
        "{\"type\":\"invocationresult\",\"invocation_id\":\"x\",\"result\":1}",
        "{\"type\":\"reattach\",\"previous_worker_id\":\"x\",\"reattach_token\":\"y\"}",
        "  ",
        "",
    };
    struct web_client client;

    fixture_main(&client);
    client_text(&client, frames[_i]);
    client_frame(&client, WEBSOCKET_BINARY, "OTLP\x01\x02", 6);
    client_frame(&client, WEBSOCKET_BINARY, "{\"type\":\"ping\"}", 15);
    ck_assert_str_eq(client_expect_text(&client), "{\"type\":\"pong\"}");
    ck_assert_uint_eq(fake_route.count, 0);
    client_close(&client);
}
END_TEST

START_TEST(progress_is_sent_when_asked_for)
{
    struct web_client client;
    struct fake_call *call;

    fixture_main(&client);
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                         "\"function_id\":\"sandbox::list\",\"progress\":true}");
    call = nth_call(1);
    ck_assert(call->wants_events);
    fake_event(call, "{\"step\":1}");
    fake_reply(call, "1");
    ck_assert_str_eq(client_expect_text(&client),
                     "{\"type\":\"invocationprogress\",\"invocation_id\":\"i\","
                     "\"event\":{\"step\":1}}");
    ck_assert_str_eq(client_expect_text(&client), RESULT "\"result\":1}");
    client_close(&client);
}
END_TEST

START_TEST(the_end_of_a_client_ends_its_calls)
{
    struct web_client client;

    fixture_main(&client);
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                         "\"function_id\":\"f\"}");
    client_text(&client, "{\"type\":\"invokefunction\",\"function_id\":\"f\"}");
    (void)nth_call(2);
    client_close(&client);
    client.loop = fixture.loop;
    client_idle(&client);
    ck_assert_uint_eq(fake_route.gone, 1);
    ck_assert_uint_eq(fake_route.cancelled, 1);
}
END_TEST

START_TEST(too_many_calls)
{
    struct web_client client;
    const char *answer;

    fixture_main(&client);
    for (unsigned i = 0; i < CALLER_CALLS_MAX + 1; i++)
        client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                             "\"function_id\":\"f\"}");
    answer = client_expect_text(&client);
    ck_assert_ptr_nonnull(strstr(answer, "\"error\":{\"code\":\"S400\""));
    ck_assert_ptr_nonnull(strstr(answer, "\"docs_url\":\"https://docs.example/#S400\""));
    ck_assert_ptr_nonnull(strstr(answer, "1024"));
    ck_assert_uint_eq(fake_route.count, CALLER_CALLS_MAX);
    client_close(&client);
}
END_TEST

START_TEST(data_that_does_not_fit)
{
    struct web_client client;
    const char *answer;

    fake_route.max_body_bytes = 10;
    fixture_main(&client);
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                         "\"function_id\":\"f\",\"data\":\"0123456789\"}");
    answer = client_expect_text(&client);
    ck_assert_ptr_nonnull(strstr(answer, "\"error\":{\"code\":\"S001\""));
    ck_assert_ptr_nonnull(strstr(answer, "12 bytes"));
    ck_assert_ptr_nonnull(strstr(answer, "limit of 10 bytes"));
    ck_assert_ptr_nonnull(strstr(answer, "engine::channels::create"));
    ck_assert_uint_eq(fake_route.count, 0);
    client_close(&client);
}
END_TEST

/* The text of a member of the greeting. */
static void member_of(const char *text, const char *key, char ret_value[64])
{
    const char *at = strstr(text, key);

    ck_assert_ptr_nonnull(at);
    (void)snprintf(ret_value, 64, "%.36s", at + strlen(key));
}

START_TEST(reattaching_retires_the_old_connection)
{
    struct web_client old, new;
    char id[64], token[64], text[300];

    client_open(&old, fixture.loop, fixture.port, "/");
    (void)client_expect_text(&old);
    member_of(buf_text(&old.message), "\"worker_id\":\"", id);
    member_of(buf_text(&old.message), "\"reattach_token\":\"", token);
    client_text(&old, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                      "\"function_id\":\"f\"}");
    (void)nth_call(1);
    fixture_main(&new);
    (void)snprintf(text, sizeof(text),
                   "{\"type\":\"reattach\",\"previous_worker_id\":\"%s\","
                   "\"reattach_token\":\"%s\"}",
                   id, id);
    client_text(&new, text);
    client_idle(&new);
    ck_assert_uint_eq(fake_route.gone, 0); /* a wrong token */
    (void)snprintf(text, sizeof(text),
                   "{\"type\":\"reattach\",\"previous_worker_id\":\"%s\","
                   "\"reattach_token\":\"%s\"}",
                   id, token);
    client_text(&new, text);
    (void)client_read_all(&old);
    ck_assert_uint_eq(fake_route.cancelled, 1);
    client_text(&new, "{\"type\":\"ping\"}");
    ck_assert_str_eq(client_expect_text(&new), "{\"type\":\"pong\"}");
    client_close(&old);
    client_close(&new);
}
END_TEST

START_TEST(workers_are_listed)
{
    struct web_client client, telemetry;
    const char *answer;

    fixture_main(&telemetry);
    client_frame(&telemetry, WEBSOCKET_BINARY, "OTLP{}", 6);
    fixture_main(&client);
    client_text(&client,
                "{\"type\":\"invokefunction\",\"function_id\":"
                "\"engine::workers::register\",\"data\":{\"runtime\":\"node\","
                "\"version\":\"0.22.1\",\"name\":\"pr\\\"obe\",\"os\":\"linux\",\"pid\":1,"
                "\"telemetry\":{}},\"action\":{\"type\":\"void\"}}");
    client_text(&client, "{\"type\":\"registerfunction\",\"id\":\"mine\"}");
    client_text(&client, "{\"type\":\"registerfunction\",\"id\":\"mine\"}");
    client_text(&client, "{\"type\":\"registerfunction\",\"id\":\"gone\"}");
    client_text(&client, "{\"type\":\"unregisterfunction\",\"id\":\"gone\"}");
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                         "\"function_id\":\"engine::workers::list\"}");
    answer = client_expect_text(&client);
    ck_assert_ptr_nonnull(strstr(answer, "\"name\":\"pr\\\"obe\",\"runtime\":\"node\","
                                         "\"version\":\"0.22.1\",\"os\":\"linux\","
                                         "\"status\":\"connected\""));
    ck_assert_ptr_nonnull(strstr(answer, "\"function_count\":1,\"functions\":[\"mine\"]"));
    ck_assert_ptr_null(strstr(answer, "\"name\":null"));
    client_close(&client);
    client_close(&telemetry);
}
END_TEST

START_TEST(functions_are_described)
{
    struct web_client client;
    const char *answer;

    fixture_main(&client);
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\",\"function_id\":"
                         "\"engine::functions::info\",\"data\":{\"function_id\":"
                         "\"sandbox::fs::mkdir\"}}");
    answer = client_expect_text(&client);
    ck_assert_ptr_nonnull(strstr(answer, "\"function_id\":\"sandbox::fs::mkdir\""));
    ck_assert_ptr_nonnull(strstr(answer, "\"request_schema\":{"));
    ck_assert_ptr_nonnull(strstr(answer, "\"response_schema\":{"));
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\",\"function_id\":"
                         "\"engine::functions::list\"}");
    answer = client_expect_text(&client);
    ck_assert_ptr_nonnull(strstr(answer, "\"result\":{\"functions\":[{"));
    ck_assert_ptr_nonnull(strstr(answer, "\"function_id\":\"sandbox::adapter::info\""));
    ck_assert_ptr_nonnull(strstr(answer, "\"request_format\":{"));
    client_close(&client);
}
END_TEST

/* A JSON string of SIZE bytes. */
static char *big_reply(size_t size)
{
    char *text = malloc(size + 1);

    memset(text, 'x', size);
    text[0] = text[size - 1] = '"';
    text[size] = '\0';
    return text;
}

START_TEST(a_pong_overtakes_what_waits)
{
    enum { RESULTS = 7 };
    size_t size = 1024 * 1024;
    char *reply = big_reply(size);
    struct web_client client;
    unsigned results = 0, before = 0;

    fixture_main(&client);
    for (int i = 0; i < RESULTS; i++)
        client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                             "\"function_id\":\"f\"}");
    (void)nth_call(RESULTS);
    for (int i = 0; i < RESULTS; i++)
        fake_reply(&fake_route.calls[i], reply);
    client_frame(&client, WEBSOCKET_PING, "", 0);
    client_idle(&client);
    for (int i = 0; i < RESULTS + 1; i++) {
        struct websocket_event event = client_next(&client);

        if (event.kind == WEBSOCKET_EVENT_PONG)
            before = results;
        else
            results += event.size > size;
    }
    ck_assert_uint_eq(results, RESULTS);
    ck_assert_uint_gt(before, 0);
    ck_assert_uint_lt(before, RESULTS);
    client_close(&client);
    free(reply);
}
END_TEST

START_TEST(a_full_queue_stops_reading)
{
    char *reply = big_reply(12 * 1024 * 1024);
    struct web_client client;

    fixture_main(&client);
    for (int i = 0; i < 2; i++)
        client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                             "\"function_id\":\"f\"}");
    (void)nth_call(2);
    fake_reply(&fake_route.calls[0], reply);
    fake_reply(&fake_route.calls[1], reply);
    client_idle(&client);
    client_text(&client, "{\"type\":\"invokefunction\",\"invocation_id\":\"i\","
                         "\"function_id\":\"f\"}");
    client_idle(&client);
    ck_assert_uint_eq(fake_route.count, 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(client_next(&client).kind, WEBSOCKET_EVENT_MESSAGE);
    (void)nth_call(3);
    client_close(&client);
    free(reply);
}
END_TEST

TCase *tests_of_calls(void)
{
    TCase *tests = tcase_create("calls");

    tcase_add_checked_fixture(tests, fixture_open, fixture_close);
    tcase_add_test(tests, a_call_and_its_result);
    tcase_add_test(tests, what_is_echoed);
    tcase_add_test(tests, calls_end_in_any_order);
    tcase_add_test(tests, an_envelope_in_the_one_form);
    tcase_add_loop_test(tests, errors_that_are_no_envelope, 0, 5);
    tcase_add_test(tests, a_reply_that_is_no_json);
    tcase_add_loop_test(tests, calls_that_nobody_waits_for, 0, 4);
    tcase_add_loop_test(tests, calls_that_are_refused, 0, 14);
    tcase_add_test(tests, ids_that_are_too_long);
    tcase_add_loop_test(tests, frames_that_are_ignored, 0, 10);
    tcase_add_test(tests, progress_is_sent_when_asked_for);
    tcase_add_test(tests, the_end_of_a_client_ends_its_calls);
    tcase_add_test(tests, too_many_calls);
    tcase_add_test(tests, data_that_does_not_fit);
    tcase_add_test(tests, reattaching_retires_the_old_connection);
    tcase_add_test(tests, workers_are_listed);
    tcase_add_test(tests, functions_are_described);
    tcase_add_test(tests, a_pong_overtakes_what_waits);
    tcase_add_test(tests, a_full_queue_stops_reading);
    return tests;
}
