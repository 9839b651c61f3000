/* test_request.c - calls: dispatch, answers, cancels, losses, hooks. */
#include "fixture.h"
#include "serve.h"
#include "unit.h"

#include <string.h>

static bool echo(struct fixture *self, const char *operation, struct request *request)
{
    size_t size;
    const char *json = request_json(request, &size);

    if (strcmp(operation, "test::echo") != 0)
        return false;
    request_reply_json(request, json, size);
    return true;
}

START_TEST(test_unknown_operation)
{
    fixture_open("");
    fixture_call(1, "no::such", "{}");
    fixture_expect_error(1, "S304", "sandbox-test does not implement no::such");
    fixture.own_operation = echo;
    fixture_call(2, "no::such", "{}");
    fixture_expect_error(2, "S304", "no::such");
    fixture_call(3, "", "{}");
    fixture_expect_error(3, "S304", "sandbox-test");
    fixture_close();
}
END_TEST

START_TEST(test_odd_names)
{
    static char name[1 << 20];

    fixture_open("");
    memset(name, 'x', sizeof(name));
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CALL,
                                     .id = 1,
                                     .operation = { name, sizeof(name) },
                                     .deadline_ms = ENVELOPE_NO_DEADLINE,
                                     .body = { "{}", 2 } });
    fixture_expect_error(1, "S304", "xxx...");
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CALL,
                                     .id = 2,
                                     .operation = { "list\0x", 6 },
                                     .deadline_ms = ENVELOPE_NO_DEADLINE,
                                     .body = { "{}", 2 } });
    fixture_expect_error(2, "S304", "list?x");
    fixture_close();
}
END_TEST

START_TEST(test_optional_operations)
{
    fixture_open("");
    fixture_call(1, "worker::list", "no JSON at all");
    fixture_expect_error(1, "S304", "worker::list");
    fixture_drop_link();
    fixture.features[0] = "worker";
    fixture.own_operation = fixture_keep;
    fixture_welcome();
    fixture_call(2, "worker::list", "[]");
    fixture_expect_error(2, "S001", "");
    fixture_call(3, "worker::list", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    ck_assert_ptr_nonnull(request_body(fixture.requests[0]));
    request_reply(fixture.requests[0], &(struct worker_list_reply){ .has_items = true });
    fixture_expect_reply(3, "[]");
    fixture_close();
}
END_TEST

START_TEST(test_body_is_checked)
{
    fixture_open("");
    fixture_call(1, "exec", "{\"sandbox_id\":7}");
    fixture_expect_error(1, "S001", "sandbox_id");
    fixture_call(2, "catalog::list", "null");
    fixture_expect_error(2, "S001", "");
    fixture_call(3, "catalog::list", "{\"x\":");
    fixture_expect_error(3, "S001", "");
    fixture_close();
}
END_TEST

START_TEST(test_own_operation)
{
    fixture.own_operation = echo;
    fixture_open("");
    fixture_call(1, "test::echo", "{\"b\": 1, \"a\":2 }");
    fixture_expect_reply(1, "{\"b\": 1, \"a\":2 }");
    fixture_close();
}
END_TEST

START_TEST(test_answers_in_any_order)
{
    fixture.own_operation = fixture_keep;
    fixture_open("");
    for (uint64_t id = 1; id <= 3; id++)
        fixture_call(id, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 3);
    fixture_reply(2, "3");
    fixture_reply(0, "1");
    fixture_reply(1, "2");
    fixture_expect_reply(1, "1");
    fixture_expect_reply(2, "2");
    fixture_expect_reply(3, "3");
    ck_assert_uint_eq(requests_count(adapter_requests(fixture.adapter)), 0);
    fixture_close();
}
END_TEST

START_TEST(test_events)
{
    struct message *event;

    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(8, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    request_event(fixture.requests[0], "{\"stage\":1}", 11);
    event = fixture_next(ENVELOPE_EVENT);
    ck_assert_uint_eq(event->envelope.id, 8);
    ck_assert(span_equals(event->envelope.body, "{\"stage\":1}"));
    free(event);
    fixture_reply(0, "{}");
    fixture_expect_reply(8, "{}");
    fixture_close();
}
END_TEST

static unsigned cancels;

static void on_cancel(void *ctx)
{
    cancels++;
}

START_TEST(test_cancel_is_told_once_and_still_answered)
{
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    request_on_cancel(fixture.requests[0], on_cancel, NULL);
    ck_assert(!request_cancelled(fixture.requests[0]));
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 1 });
    TURN_UNTIL(fixture.loop, cancels == 1);
    ck_assert(request_cancelled(fixture.requests[0]));
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 1 });
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 999 });
    turn_for(fixture.loop, 50);
    ck_assert_uint_eq(cancels, 1);
    fixture_fail(0, S200, "cut");
    fixture_expect_error(1, "S200", "cut");
    fixture_close();
}
END_TEST

START_TEST(test_cancel_before_its_function)
{
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 1 });
    TURN_UNTIL(fixture.loop, request_cancelled(fixture.requests[0]));
    request_on_cancel(fixture.requests[0], on_cancel, NULL);
    ck_assert_uint_eq(cancels, 0); /* not from inside */
    TURN_UNTIL(fixture.loop, cancels == 1);
    fixture_reply(0, "{}");
    fixture_expect_reply(1, "{}");
    fixture_close();
}
END_TEST

START_TEST(test_forgotten_cancel_function)
{
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    request_on_cancel(fixture.requests[0], on_cancel, NULL);
    request_on_cancel(fixture.requests[0], NULL, NULL);
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 1 });
    TURN_UNTIL(fixture.loop, request_cancelled(fixture.requests[0]));
    ck_assert_uint_eq(cancels, 0);
    fixture_close();
}
END_TEST

START_TEST(test_loss_cancels_and_drops_the_answer)
{
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    request_on_cancel(fixture.requests[0], on_cancel, NULL);
    fixture_drop_link();
    TURN_UNTIL(fixture.loop, cancels == 1);
    fixture_welcome();
    fixture_call(1, "test::hold", "{}"); /* ids begin anew with a connection */
    TURN_UNTIL(fixture.loop, fixture.request_count == 2);
    fixture_reply(0, "\"late\"");
    fixture_reply(1, "\"new\"");
    fixture_expect_reply(1, "\"new\"");
    fixture_expect_none(ENVELOPE_REPLY);
    fixture_close();
}
END_TEST

START_TEST(test_one_id_twice)
{
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "test::hold", "{}");
    fixture_call(1, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, !fixture.link);
    ck_assert_uint_eq(fixture.request_count, 1);
    fixture_close();
}
END_TEST

START_TEST(test_reply_too_large_for_a_message)
{
    size_t size = 17 << 20;
    char *json = malloc(size);

    ck_assert_ptr_nonnull(json);
    memset(json, '1', size);
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    request_reply_json(fixture.requests[0], json, size);
    fixture_expect_error(1, "S300", "17825792 bytes");
    free(json);
    fixture_close();
}
END_TEST

static struct request *crowd[64];
static unsigned crowd_count;

static bool join_crowd(struct fixture *self, const char *operation, struct request *request)
{
    ck_assert_uint_lt(crowd_count, ARRAY_SIZE(crowd));
    crowd[crowd_count++] = request;
    return true;
}

START_TEST(test_bodies_in_flight_are_bounded)
{
    enum { BODY_BYTES = 15 << 20, FIT = (512 << 20) / BODY_BYTES };
    char *body = malloc(BODY_BYTES + 1);

    ck_assert_ptr_nonnull(body);
    memset(body, ' ', BODY_BYTES);
    body[0] = '{';
    body[BODY_BYTES - 1] = '}';
    body[BODY_BYTES] = '\0';
    fixture.own_operation = join_crowd;
    fixture_open("");
    for (unsigned i = 0; i < FIT; i++) {
        fixture_call(i + 1, "test::hold", body);
        TURN_UNTIL(fixture.loop, crowd_count == i + 1);
    }
    fixture_call(100, "test::hold", body);
    fixture_expect_error(100, "S400", "exceeds the limit");
    request_reply_json(crowd[0], "1", 1);
    fixture_expect_reply(1, "1");
    fixture_call(101, "test::hold", body);
    TURN_UNTIL(fixture.loop, crowd_count == FIT + 1);
    free(body);
    fixture_close();
}
END_TEST

START_TEST(test_outcome_only_where_it_belongs)
{
    struct sandbox_error err = { 0 };

    fixture.features[0] = "worker";
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "worker::stop",
                 "{\"vm_id\":\"v\",\"instance\":\"i\",\"auth_token\":\"t\"}");
    fixture_call(2, "worker::list", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 2);
    fixture_fail(0, S300, "lost");
    fixture_expect_error(1, "S300", "\"outcome\":\"may_have_run\"");
    sandbox_error_set(&err, S300, "lost");
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    request_fail(fixture.requests[1], &err);
    struct message *answer = fixture_answer(2);

    ck_assert_ptr_null(
        memmem(answer->envelope.body.data, answer->envelope.body.size, "outcome", 7));
    ck_assert_ptr_nonnull(memmem(answer->envelope.body.data, answer->envelope.body.size,
                                 "https://docs.test/#S300", 23));
    free(answer);
    fixture_close();
}
END_TEST

/* Hooks of test back ends. */

static struct request *held;

static bool hold_call(void *ctx, struct request *request, const char *operation)
{
    held = request;
    return true;
}

static bool hold_answer(void *ctx, struct request *request, const char *operation,
                        struct buf *body)
{
    held = request;
    buf_clear(body);
    return buf_append_text(body, "\"garbled\"") == 0;
}

static void older(void *ctx, struct envelope *hello)
{
    hello->contract.minor = 0;
    hello->feature_count = 0;
}

static bool lose_cancels(void *ctx, enum envelope_kind kind)
{
    return kind == ENVELOPE_CANCEL;
}

START_TEST(test_fault_holds_a_call)
{
    fixture.has_fault = true;
    fixture.fault.called = hold_call;
    fixture.own_operation = echo;
    fixture_open("");
    fixture_call(1, "test::echo", "{\"a\":1}");
    TURN_UNTIL(fixture.loop, held);
    fault_go_on(held);
    fixture_expect_reply(1, "{\"a\":1}");
    fixture_call(2, "test::echo", "{}");
    held = NULL;
    TURN_UNTIL(fixture.loop, held);
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 2 });
    TURN_UNTIL(fixture.loop, request_cancelled(held));
    fault_go_on(held);
    fixture_expect_error(2, "S300", "cancelled");
    fixture_close();
}
END_TEST

START_TEST(test_fault_changes_and_holds_an_answer)
{
    fixture.has_fault = true;
    fixture.fault.answering = hold_answer;
    fixture.own_operation = echo;
    fixture_open("");
    fixture_call(1, "test::echo", "{}");
    TURN_UNTIL(fixture.loop, held);
    fixture_expect_none(ENVELOPE_REPLY);
    fault_answer(held);
    fixture_expect_reply(1, "\"garbled\"");
    held = NULL;
    fixture_call(2, "test::echo", "{}");
    TURN_UNTIL(fixture.loop, held);
    request_drop(held);
    turn_for(fixture.loop, 50);
    fixture_expect_none(ENVELOPE_REPLY);
    fixture_close();
}
END_TEST

START_TEST(test_fault_plays_an_older_adapter)
{
    fixture.has_fault = true;
    fixture.fault.hello = older;
    fixture.fault.received = lose_cancels;
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "adapter::info", "{}");
    fixture_expect_reply(1, "{\"adapter\":\"sandbox-test\",\"adapter_version\":\"7.8.9\","
                            "\"contract\":{\"major\":1,\"minor\":0}}");
    fixture_call(2, "test::hold", "{}");
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 2 });
    turn_for(fixture.loop, 50);
    ck_assert(!request_cancelled(fixture.requests[0]));
    fault_send_raw(fixture.adapter, "\x93\x04\xcf\0\0\0\0\0\0\0\x63\xc4\x01x", 14);
    struct message *raw = fixture_answer(99);

    free(raw);
    fault_disconnect(fixture.adapter);
    TURN_UNTIL(fixture.loop, !fixture.link);
    fixture_close();
}
END_TEST

UNIT_MAIN("request", test_unknown_operation, test_odd_names, test_optional_operations,
          test_body_is_checked, test_own_operation, test_answers_in_any_order, test_events,
          test_cancel_is_told_once_and_still_answered, test_cancel_before_its_function,
          test_forgotten_cancel_function, test_loss_cancels_and_drops_the_answer,
          test_one_id_twice, test_reply_too_large_for_a_message,
          test_bodies_in_flight_are_bounded, test_outcome_only_where_it_belongs,
          test_fault_holds_a_call, test_fault_changes_and_holds_an_answer,
          test_fault_plays_an_older_adapter)
