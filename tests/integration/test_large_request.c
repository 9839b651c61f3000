/* test_large_request.c - requests beyond sandbox.max_message_bytes are refused by name at each
 * front and never reach the adapter (contract 11.1, 14): 48 MiB of stdin are one of these. */
#include <stdio.h>
#include <string.h>

#include "trial.h"
#include "unit.h"
#include "web_client.h"

#define NAME "played"
#define MIB (1024u * 1024)
#define LARGEST (16 * MIB)

/* {"stdin":"AAAA…"} of SIZE bytes in all. */
static void fill_body(struct buf *body, size_t size)
{
    static const char head[] = "{\"sandbox_id\":\"x\",\"cmd\":\"cat\",\"stdin\":\"";
    size_t rest = size - (sizeof(head) - 1) - 2;
    uint8_t *place;

    ck_assert_int_eq(buf_append(body, head, sizeof(head) - 1), 0);
    place = buf_reserve(body, rest);
    ck_assert_ptr_nonnull(place);
    memset(place, 'A', rest);
    body->size += rest;
    ck_assert_int_eq(buf_append(body, "\"}", 2), 0);
}

/* Sends an exec with so large a body. */
static void web_exec(struct web_client *web, struct trial *trial, size_t body_size)
{
    struct buf body = { 0 }, message = { 0 };

    fill_body(&body, body_size);
    ck_assert_int_eq(buf_printf(&message,
                                "{\"type\":\"invokefunction\",\"invocation_id\":\"1\","
                                "\"function_id\":\"sandbox::exec\",\"data\":"),
                     0);
    ck_assert_int_eq(buf_append(&message, body.data, body.size), 0);
    ck_assert_int_eq(buf_append(&message, "}", 1), 0);
    client_open_main(web, trial->loop, router_process_port(trial->router));
    client_frame(web, WEBSOCKET_TEXT, message.data, message.size);
    buf_done(&message);
    buf_done(&body);
}

/* Not one byte is kept of what the length alone shows to be too much. */
START_TEST(test_web_huge)
{
    struct web_client web;
    struct trial trial;

    trial_open(&trial, trial_unmanaged(NAME));
    struct played_adapter *adapter = trial_adapter(&trial, NAME, NULL, NULL);
    size_t before = router_process_rss_bytes(trial.router);
    web_exec(&web, &trial, 64 * MIB); /* 48 MiB as base64 */
    struct websocket_event event = client_next(&web);
    ck_assert_int_eq(event.kind, WEBSOCKET_EVENT_CLOSE);
    ck_assert_uint_eq(event.code, WEBSOCKET_CLOSE_TOO_BIG);
    ck_assert_uint_gt(event.size, 0); /* a reason */
    if (!TRIAL_SANITIZED)
        ck_assert_uint_lt(router_process_rss_bytes(trial.router), before + 8 * MIB);
    client_close(&web);
    ck_assert_uint_eq(played_adapter_calls(adapter), 0);
    played_adapter_free(adapter);
    trial_close(&trial);
}
END_TEST

START_TEST(test_web)
{
    struct web_client web;
    struct trial trial;
    const char *text;

    trial_open(&trial, trial_unmanaged(NAME));
    struct played_adapter *adapter = trial_adapter(&trial, NAME, NULL, NULL);
    web_exec(&web, &trial, LARGEST - 1024);
    text = client_expect_text(&web);
    /* The one code that this front gives itself (iii-wire 3.3). */
    ck_assert_msg(strstr(text, "\"code\":\"S001\"") && strstr(text, "is over the limit of"),
                  "%.300s", text);
    ck_assert_uint_eq(played_adapter_calls(adapter), 0);
    client_text(&web, "{\"type\":\"invokefunction\",\"invocation_id\":\"2\","
                      "\"function_id\":\"sandbox::list\",\"data\":{}}");
    text = client_expect_text(&web);
    ck_assert_msg(strstr(text, "invocationresult"), "%.300s", text); /* the connection stays */
    client_close(&web);
    played_adapter_free(adapter);
    trial_close(&trial);
}
END_TEST

/* A message that fits and whose body would not fit into one to the adapter. */
START_TEST(test_native)
{
    struct buf body = { 0 };
    struct trial trial;
    bool ok = true;

    trial_open(&trial, trial_unmanaged(NAME));
    struct played_adapter *adapter = trial_adapter(&trial, NAME, NULL, NULL);
    fill_body(&body, LARGEST - 1024);
    char *text = trial_call(&trial, "sandbox::exec", buf_text(&body), &ok);
    ck_assert(!ok);
    ck_assert_msg(strstr(text, "max_message_bytes"), "%.300s", text);
    ck_assert_uint_eq(played_adapter_calls(adapter), 0);
    free(text);

    buf_clear(&body);
    fill_body(&body, LARGEST - 64 * 1024);
    text = trial_call(&trial, "sandbox::exec", buf_text(&body), &ok);
    ck_assert(ok); /* echoed whole */
    ck_assert_uint_eq(strlen(text), body.size);
    free(text);
    played_adapter_free(adapter);
    buf_done(&body);
    trial_close(&trial);
}
END_TEST

UNIT_MAIN("large_request", test_web_huge, test_web, test_native)
