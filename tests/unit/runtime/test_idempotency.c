/* test_idempotency.c - repeats of a key (contract 2.5). */
#include "fake_clock.h"
#include "fixture.h"
#include "idempotency.h"
#include "serve.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define BODY "{\"idempotency_key\":\"k\",\"a\":[1,2],\"b\":{\"c\":\"d\"}}"

static void open_keeping(void)
{
    fixture.own_operation = fixture_keep;
    fixture_open("");
}

static void begin(uint64_t id, const char *body)
{
    unsigned count = fixture.request_count;

    fixture_call(id, "test::key", body);
    TURN_UNTIL(fixture.loop, fixture.request_count == count + 1);
}

START_TEST(test_repeat_gets_the_same_bytes)
{
    open_keeping();
    begin(1, BODY);
    fixture_reply(0, "{\"odd\" :  1 }");
    fixture_expect_reply(1, "{\"odd\" :  1 }");
    fixture_call(2, "test::key", BODY);
    fixture_expect_reply(2, "{\"odd\" :  1 }");
    fixture_call(3, "test::key",
                 "{ \"b\" : {\"c\":\"\\u0064\"}, \"a\":[1.0,20e-1],\n"
                 "  \"idempotency_key\":\"other\", \"idempotency_key\":\"k\"}");
    fixture_expect_reply(3, "{\"odd\" :  1 }");
    ck_assert_uint_eq(fixture.request_count, 1);
    fixture_close();
}
END_TEST

START_TEST(test_repeat_waits_for_the_first)
{
    open_keeping();
    begin(1, BODY);
    fixture_call(2, "test::key", BODY);
    fixture_call(3, "test::key", BODY);
    turn_for(fixture.loop, 50);
    fixture_expect_none(ENVELOPE_REPLY);
    fixture_reply(0, "\"once\"");
    fixture_expect_reply(1, "\"once\"");
    fixture_expect_reply(2, "\"once\"");
    fixture_expect_reply(3, "\"once\"");
    ck_assert_uint_eq(fixture.request_count, 1);
    fixture_close();
}
END_TEST

START_TEST(test_another_body)
{
    open_keeping();
    begin(1, BODY);
    fixture_call(2, "test::key", "{\"idempotency_key\":\"k\",\"a\":[2,1],\"b\":{\"c\":\"d\"}}");
    fixture_expect_error(2, "S001", "idempotency_key k");
    fixture_reply(0, "1");
    fixture_expect_reply(1, "1");
    fixture_call(3, "test::key", "{\"idempotency_key\":\"k\"}");
    fixture_expect_error(3, "S001", "idempotency_key");
    fixture_close();
}
END_TEST

START_TEST(test_without_a_key)
{
    open_keeping();
    begin(1, "{}");
    begin(2, "{\"idempotency_key\":null}");
    fixture_reply(0, "1");
    fixture_reply(1, "2");
    fixture_expect_reply(1, "1");
    fixture_expect_reply(2, "2");
    fixture_close();
}
END_TEST

START_TEST(test_final_errors_are_kept)
{
    open_keeping();
    begin(1, BODY);
    fixture_fail(0, S200, "timed out");
    fixture_expect_error(1, "S200", "timed out");
    fixture_call(2, "test::key", BODY);
    fixture_expect_error(2, "S200", "timed out");
    ck_assert_uint_eq(fixture.request_count, 1);
    fixture_close();
}
END_TEST

/* Retryable ones, S003 and S400 are not. */
static const struct {
    enum sandbox_code code;
    const char *text;
} passing[] = { { S102, "S102" }, { S003, "S003" }, { S400, "S400" }, { S218, "S218" } };

START_TEST(test_passing_errors_are_not_kept)
{
    open_keeping();
    for (unsigned i = 0; i < ARRAY_SIZE(passing); i++) {
        begin(1 + i, BODY);
        fixture_call(100 + i, "test::key", BODY); /* one that waits gets it all the same */
        turn_for(fixture.loop, 20);
        fixture_fail(i, passing[i].code, "later");
        fixture_expect_error(1 + i, passing[i].text, "later");
        fixture_expect_error(100 + i, passing[i].text, "later");
    }
    begin(50, BODY);
    fixture_reply(ARRAY_SIZE(passing), "1");
    fixture_expect_reply(50, "1");
    fixture_close();
}
END_TEST

static unsigned cancels;

static void on_cancel(void *ctx)
{
    cancels++;
}

START_TEST(test_runs_to_its_end_and_outlives_the_link)
{
    open_keeping();
    begin(1, BODY);
    request_on_cancel(fixture.requests[0], on_cancel, NULL);
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 1 });
    turn_for(fixture.loop, 50);
    fixture_drop_link();
    fixture_welcome();
    ck_assert_uint_eq(cancels, 0);
    fixture_call(1, "test::key", BODY);
    turn_for(fixture.loop, 50);
    fixture_reply(0, "\"kept\"");
    fixture_expect_reply(1, "\"kept\"");
    fixture_call(2, "test::key", BODY);
    fixture_expect_reply(2, "\"kept\"");
    fixture_close();
}
END_TEST

START_TEST(test_large_reply)
{
    size_t size = 3 << 20;
    char *json = malloc(size + 1);

    ck_assert_ptr_nonnull(json);
    for (size_t i = 0; i < size; i++)
        json[i] = (char)('0' + i % 10);
    json[size] = '\0';
    open_keeping();
    begin(1, BODY);
    fixture_reply(0, json);
    fixture_expect_reply(1, json);
    for (uint64_t id = 2; id < 5; id++) {
        fixture_call(id, "test::key", BODY);
        fixture_expect_reply(id, json);
    }
    free(json);
    fixture_close();
}
END_TEST

static bool answer_at_once(struct fixture *self, const char *operation, struct request *request)
{
    if (idempotency_admit(request))
        request_reply_json(request, "1", 1);
    return true;
}

START_TEST(test_so_many_keys_and_no_more)
{
    char body[64];

    fixture.own_operation = answer_at_once;
    fixture_open("");
    for (uint64_t id = 1; id <= IDEMPOTENCY_KEYS_MAX; id++) {
        (void)snprintf(body, sizeof(body), "{\"idempotency_key\":\"%u\"}", (unsigned)id);
        fixture_call(id, "test::key", body);
        if (id % 256 == 0)
            for (uint64_t i = id - 255; i <= id; i++)
                fixture_expect_reply(i, "1");
    }
    fixture_call(9001, "test::key", "{\"idempotency_key\":\"one more\"}");
    fixture_expect_error(9001, "S400", "4096");
    fixture_call(9002, "test::key", "{\"idempotency_key\":\"7\"}");
    fixture_expect_reply(9002, "1");
    fixture_call(9003, "other::key", "{}");
    fixture_expect_reply(9003, "1");
    fixture_close();
}
END_TEST

START_TEST(test_scope_is_the_operation)
{
    fixture.own_operation = answer_at_once;
    fixture_open("");
    fixture_call(1, "test::key", "{\"idempotency_key\":\"k\"}");
    fixture_call(2, "test::key2", "{\"idempotency_key\":\"k\",\"a\":1}");
    fixture_expect_reply(1, "1");
    fixture_expect_reply(2, "1");
    fixture_close();
}
END_TEST

START_TEST(test_keys_are_held_for_ten_minutes)
{
    open_keeping();
    begin(1, BODY);
    fixture_reply(0, "1");
    fixture_expect_reply(1, "1");
    fixture_drop_link(); /* so long a silence ends it anyhow */
    fake_clock_pass(fixture.loop, IDEMPOTENCY_KEEP_MS - 10000);
    fixture_welcome();
    fixture_call(2, "test::key", BODY);
    fixture_expect_reply(2, "1");
    fake_clock_pass(fixture.loop, 11000);
    begin(3, "{\"idempotency_key\":\"k\",\"another\":\"body\"}");
    fixture_close();
    fake_clock_reset();
}
END_TEST

START_TEST(test_an_expired_key_that_still_runs)
{
    open_keeping();
    begin(1, BODY);
    fixture_call(2, "test::key", BODY);
    turn_for(fixture.loop, 20);
    fixture_drop_link();
    fake_clock_pass(fixture.loop, IDEMPOTENCY_KEEP_MS + 1000);
    fixture_welcome();
    begin(3, BODY); /* runs anew */
    fixture_reply(0, "\"old\"");
    fixture_reply(1, "\"new\"");
    fixture_expect_reply(3, "\"new\"");
    fixture_call(4, "test::key", BODY);
    fixture_expect_reply(4, "\"new\"");
    fixture_close();
    fake_clock_reset();
}
END_TEST

START_TEST(test_end_with_waiters)
{
    open_keeping();
    begin(1, BODY);
    fixture_call(2, "test::key", BODY);
    turn_for(fixture.loop, 20);
    fixture_close(); /* under the leak checker */
}
END_TEST

UNIT_MAIN("idempotency", test_repeat_gets_the_same_bytes, test_repeat_waits_for_the_first,
          test_another_body, test_without_a_key, test_final_errors_are_kept,
          test_passing_errors_are_not_kept, test_runs_to_its_end_and_outlives_the_link,
          test_large_reply, test_so_many_keys_and_no_more, test_scope_is_the_operation,
          test_keys_are_held_for_ten_minutes, test_an_expired_key_that_still_runs,
          test_end_with_waiters)
