/* test_passthrough.c - the property that the router is for: request, reply and error bodies are
 * the same bytes on the other side (contract 1), over both fronts and real processes. */
#include <stdio.h>
#include <string.h>

#include "json_scan.h"
#include "random_json.h"
#include "trial.h"
#include "unit.h"
#include "web_client.h"

#define BODIES (TRIAL_SANITIZED ? 40 : 160)
#define LONG_EVERY 40
#define SEED 0x5eedull

/* What the adapter got, and what it is to answer. */
struct other_side {
    struct buf request;
    struct buf answer;
    bool answers_error;
};

static void on_call(void *ctx, struct played_adapter *adapter, const struct envelope *call)
{
    struct other_side *side = ctx;
    struct span answer = { (const char *)side->answer.data, side->answer.size };

    buf_clear(&side->request);
    ck_assert_int_eq(buf_append(&side->request, call->body.data, call->body.size), 0);
    if (side->answers_error)
        played_adapter_error(adapter, call->id, answer);
    else
        played_adapter_reply(adapter, call->id, answer);
}

static void check_same(const char *what, struct span got, const struct buf *wanted)
{
    size_t at = 0;

    while (at < got.size && at < wanted->size && got.data[at] == (char)wanted->data[at])
        at++;
    ck_assert_msg(got.size == wanted->size && at == got.size,
                  "%s differs at byte %zu of %zu: got %.40s, want %.40s", what, at,
                  wanted->size, got.data + (at > 10 ? at - 10 : 0),
                  (const char *)wanted->data + (at > 10 ? at - 10 : 0));
}

static struct span whole(const struct buf *buf)
{
    return (struct span){ (const char *)buf->data, buf->size };
}

static void fill(struct random_json *random, struct other_side *side, struct buf *request,
                 unsigned number)
{
    buf_clear(request);
    buf_clear(&side->answer);
    random_json_object(random, number % LONG_EVERY == 1, request);
    random_json_object(random, number % LONG_EVERY == 2, &side->answer);
    side->answers_error = number % 5 == 4;
}

static void check_native(struct trial *trial, struct other_side *side,
                         const struct buf *request)
{
    struct native_call *call;
    struct span answer;

    ck_assert_int_eq(
        native_call_start(trial->caller, "sandbox::exec", request->data, request->size, &call),
        0);
    ck_assert_int_eq(native_call_wait(call, TRIAL_WAIT_MS), 0);
    ck_assert_int_eq(native_call_ok(call), !side->answers_error);
    answer.data = native_call_body(call, &answer.size);
    check_same("request", whole(&side->request), request);
    check_same(side->answers_error ? "error" : "reply", answer, &side->answer);
    native_call_free(call);
}

START_TEST(test_native)
{
    struct random_json random = { SEED };
    struct other_side side = { 0 };
    struct buf request = { 0 };
    struct trial trial;
    struct played_adapter *adapter;

    trial_open(&trial, trial_unmanaged("one"));
    adapter = trial_adapter(&trial, "one", on_call, &side);
    router_process_await_bound(trial.router, "one");
    for (unsigned i = 0; i < BODIES; i++) {
        fill(&random, &side, &request, i);
        check_native(&trial, &side, &request);
    }
    buf_clear(&side.answer);
    ck_assert_int_eq(buf_append_text(&side.answer, "{}"), 0);
    side.answers_error = false;
    played_adapter_free(adapter);
    buf_done(&side.request);
    buf_done(&side.answer);
    buf_done(&request);
    trial_close(&trial);
}
END_TEST

/* A reply stands in the frame as it is; an error in its message, escaped once (iii-wire 3.3).
 */
static void check_web(struct web_client *web, struct other_side *side,
                      const struct buf *request, unsigned number)
{
    struct buf frame = { 0 }, message = { 0 };
    struct span object;
    const char *text;

    ck_assert_int_eq(buf_printf(&frame,
                                "{\"type\":\"invokefunction\",\"invocation_id\":\"%u\","
                                "\"function_id\":\"sandbox::exec\",\"data\":",
                                number),
                     0);
    ck_assert_int_eq(buf_append(&frame, request->data, request->size), 0);
    ck_assert_int_eq(buf_append_byte(&frame, '}'), 0);
    client_frame(web, WEBSOCKET_TEXT, frame.data, frame.size);
    text = client_expect_text(web);
    check_same("request", whole(&side->request), request);
    ck_assert_int_eq(json_scan(text, web->message.size, &object, NULL), 0);
    if (side->answers_error) {
        struct span error = json_get(object, "error");

        ck_assert_int_eq(json_string_decode(json_get(error, "message"), &message), 0);
        check_same("error", whole(&message), &side->answer);
    } else {
        check_same("reply", json_get(object, "result"), &side->answer);
    }
    buf_done(&frame);
    buf_done(&message);
}

START_TEST(test_web)
{
    struct random_json random = { SEED + 1 };
    struct other_side side = { 0 };
    struct buf request = { 0 };
    struct trial trial;
    struct web_client web;
    struct played_adapter *adapter;

    trial_open(&trial, trial_unmanaged("one"));
    adapter = trial_adapter(&trial, "one", on_call, &side);
    router_process_await_bound(trial.router, "one");
    client_open_main(&web, trial.loop, router_process_port(trial.router));
    for (unsigned i = 0; i < BODIES; i++) {
        fill(&random, &side, &request, i);
        check_web(&web, &side, &request, i);
    }
    client_close(&web);
    played_adapter_free(adapter);
    buf_done(&side.request);
    buf_done(&side.answer);
    buf_done(&request);
    trial_close(&trial);
}
END_TEST

UNIT_MAIN("passthrough", test_native, test_web)
