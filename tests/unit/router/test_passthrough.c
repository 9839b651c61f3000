/* test_passthrough.c - one answer for each call, the same bytes, and what ends a call without
 * its adapter. */
#include "fixture.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static const char mock[] = "  adapter: mock\n";

struct scene {
    struct fixture fixture;
    struct peer adapter;
    struct peer caller;
};

static void scene_open(struct scene *scene)
{
    fixture_open(&scene->fixture, mock, NULL);
    peer_as_adapter(&scene->adapter, &scene->fixture, "mock");
    peer_as_caller(&scene->caller, &scene->fixture);
}

static void scene_close(struct scene *scene)
{
    peer_close(&scene->caller);
    peer_close(&scene->adapter);
    fixture_close(&scene->fixture);
}

/* A small generator with a fixed seed: the same texts in each run. */
static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

/* JSON with all that a decoder would be tempted to tidy: spaces, escapes, exponents, key order
 * and repeated keys. */
static void random_json(struct buf *to, unsigned depth)
{
    static const char *const scalars[] = { "null",         "true",
                                           "-0",           "1e400",
                                           "1.50",         "123456789012345678901234",
                                           "\"\\u0041\"",  "\"\\/\"",
                                           "\"\xc3\xa9\"", "\"\\ud83d\\ude00\"",
                                           "0.1e-7",       "\"\"" };
    unsigned count = random_below(5);

    if (depth == 0 || random_below(3) == 0) {
        (void)buf_append_text(to, scalars[random_below(ARRAY_SIZE(scalars))]);
        return;
    }
    (void)buf_append_text(to, "{");
    for (unsigned i = 0; i < count; i++) {
        (void)buf_printf(to, "%s\"k%u\"%s:\t", i ? " ,\n" : "", random_below(3),
                         random_below(2) ? "" : " ");
        random_json(to, depth - 1);
    }
    (void)buf_append_text(to, "}");
}

static void expect_body(struct peer *peer, enum envelope_kind kind, const struct buf *body)
{
    struct received *received = peer_take(peer, kind);

    ck_assert_uint_eq(received->envelope.body.size, body->size);
    ck_assert_mem_eq(received->envelope.body.data, body->data, body->size);
    free(received);
}

START_TEST(test_bytes_are_kept)
{
    static const enum envelope_kind kinds[] = { ENVELOPE_EVENT, ENVELOPE_REPLY,
                                                ENVELOPE_ERROR };
    struct scene scene;

    scene_open(&scene);
    for (uint64_t id = 0; id < 400; id++) {
        _cleanup_(buf_done)
        struct buf request = { 0 };
        _cleanup_(buf_done)
        struct buf reply = { 0 };
        struct received *call;
        enum envelope_kind kind = kinds[1 + id % 2];

        random_json(&request, 4);
        random_json(&reply, 4);
        peer_call(&scene.caller, id, "sandbox::exec", buf_text(&request));
        call = peer_take(&scene.adapter, ENVELOPE_CALL);
        ck_assert_uint_eq(call->envelope.body.size, request.size);
        ck_assert_mem_eq(call->envelope.body.data, request.data, request.size);
        peer_answer(&scene.adapter, ENVELOPE_EVENT, call->envelope.id, buf_text(&request));
        peer_answer(&scene.adapter, kind, call->envelope.id, buf_text(&reply));
        expect_body(&scene.caller, ENVELOPE_EVENT, &request);
        expect_body(&scene.caller, kind, &reply);
        free(call);
    }
    scene_close(&scene);
}
END_TEST

/* What the adapter adds behind a body passes too: the message is the same but for its id. */
START_TEST(test_the_whole_message_is_kept)
{
    static const uint8_t tail[] = { 0xa5, 'l', 'a', 't', 'e', 'r' };
    _cleanup_(buf_done)
    struct buf message = { 0 };
    struct scene scene;
    struct received *answer;
    struct envelope reply = { .kind = ENVELOPE_REPLY, .body = span_of_text("{\"a\" : 1}") };

    scene_open(&scene);
    peer_call(&scene.caller, 77, "sandbox::list", "");
    reply.id = peer_expect_call(&scene.adapter, "list");
    ck_assert_int_eq(envelope_encode(&reply, &message), 0);
    message.data[0]++; /* one element more */
    ck_assert_int_eq(buf_append(&message, tail, sizeof(tail)), 0);
    ck_assert_int_eq(sp_send(scene.adapter.sp, message.data, message.size), 0);
    answer = peer_take(&scene.caller, ENVELOPE_REPLY);
    ck_assert_int_eq(envelope_set_id(message.data, message.size, 77), 0);
    ck_assert_uint_eq(answer->size, message.size);
    ck_assert_mem_eq(answer->data, message.data, message.size);
    free(answer);
    scene_close(&scene);
}
END_TEST

START_TEST(test_what_a_call_carries)
{
    struct scene scene;
    struct received *call;

    scene_open(&scene);
    peer_send(&scene.caller, &(struct envelope){ .kind = ENVELOPE_CALL,
                                                 .id = 5,
                                                 .operation = span_of_text("sandbox::fs::ls"),
                                                 .deadline_ms = 90000,
                                                 .body = span_of_text("{}"),
                                                 .traceparent = span_of_text("00-aa-bb-01") });
    call = peer_take(&scene.adapter, ENVELOPE_CALL);
    ck_assert(span_equals(call->envelope.operation, "fs::ls"));
    ck_assert_uint_eq(call->envelope.deadline_ms, 90000);
    ck_assert(span_equals(call->envelope.traceparent, "00-aa-bb-01"));
    free(call);
    peer_call(&scene.caller, 6, "sandbox::list", ""); /* no body is an empty object */
    call = peer_take(&scene.adapter, ENVELOPE_CALL);
    ck_assert_uint_eq(call->envelope.deadline_ms, ENVELOPE_NO_DEADLINE);
    ck_assert(span_equals(call->envelope.body, "{}"));
    ck_assert_ptr_null(call->envelope.traceparent.data);
    free(call);
    scene_close(&scene);
}
END_TEST

START_TEST(test_any_order_and_equal_ids)
{
    enum { CALLS = 500 };
    struct scene scene;
    struct peer second;
    uint64_t ids[2 * CALLS];

    scene_open(&scene);
    peer_as_caller(&second, &scene.fixture);
    for (unsigned i = 0; i < CALLS; i++) { /* both callers use the same ids */
        char body[32];

        (void)snprintf(body, sizeof(body), "[%u]", i);
        peer_call(&scene.caller, i, "sandbox::exec", body);
        peer_call(&second, i, "sandbox::exec", body);
    }
    for (unsigned i = 0; i < 2 * CALLS; i++)
        ids[i] = peer_expect_call(&scene.adapter, "exec");
    ck_assert_uint_eq(scene.fixture.router.passthrough.open, 2 * CALLS);
    for (unsigned i = 2 * CALLS; i-- > 0;)
        peer_answer(&scene.adapter, ENVELOPE_REPLY, ids[i], "{}");
    for (unsigned i = 0; i < CALLS; i++) {
        peer_expect(&scene.caller, ENVELOPE_REPLY);
        peer_expect(&second, ENVELOPE_REPLY);
    }
    ck_assert_uint_eq(scene.fixture.router.passthrough.in_use, 0);
    peer_close(&second);
    scene_close(&scene);
}
END_TEST

START_TEST(test_loss)
{
    struct scene scene;
    uint64_t id;

    scene_open(&scene);
    peer_call(&scene.caller, 1, "sandbox::exec", "{}");
    peer_call(&scene.caller, 2, "sandbox::fs::ls", "{}");
    (void)peer_expect_call(&scene.adapter, "exec");
    (void)peer_expect_call(&scene.adapter, "fs::ls");
    peer_close(&scene.adapter);
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 1, "\"outcome\":\"may_have_run\"");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 2, "adapter mock was lost");
    ck_assert_uint_eq(scene.fixture.router.passthrough.in_use, 0);

    /* Nothing is sent again; the next call goes to the new connection. */
    peer_as_adapter(&scene.adapter, &scene.fixture, "mock");
    peer_call(&scene.caller, 3, "sandbox::list", "{}");
    id = peer_expect_call(&scene.adapter, "list");
    ck_assert_uint_eq(scene.adapter.received_count, 2); /* WELCOME and that call */
    peer_answer(&scene.adapter, ENVELOPE_REPLY, id, "[]");
    peer_expect_answer(&scene.caller, ENVELOPE_REPLY, 3, "[]");
    scene_close(&scene);
}
END_TEST

START_TEST(test_caller_leaves)
{
    struct scene scene;
    struct received *cancel;
    uint64_t id;

    scene_open(&scene);
    peer_call(&scene.caller, 1, "sandbox::exec", "{}");
    id = peer_expect_call(&scene.adapter, "exec");
    peer_close(&scene.caller);
    cancel = peer_take(&scene.adapter, ENVELOPE_CANCEL);
    ck_assert_uint_eq(cancel->envelope.id, id);
    free(cancel);
    ck_assert_uint_eq(scene.fixture.router.passthrough.open, 0);
    ck_assert_uint_eq(scene.fixture.router.passthrough.in_use, 1); /* a tombstone */
    peer_answer(&scene.adapter, ENVELOPE_REPLY, id, "{}");
    TURN_UNTIL(scene.fixture.loop, scene.fixture.router.passthrough.in_use == 0);
    ck_assert(!scene.adapter.closed);
    peer_as_caller(&scene.caller, &scene.fixture);
    scene_close(&scene);
}
END_TEST

START_TEST(test_cancel_is_answered_once)
{
    struct scene scene;
    uint64_t id;

    scene_open(&scene);
    peer_call(&scene.caller, 1, "sandbox::exec", "{}");
    id = peer_expect_call(&scene.adapter, "exec");
    peer_send(&scene.caller, &(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 1 });
    peer_expect(&scene.adapter, ENVELOPE_CANCEL);
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 1, "\"code\":\"cancelled\"");
    peer_send(&scene.caller, &(struct envelope){ .kind = ENVELOPE_CANCEL, .id = 1 });
    peer_answer(&scene.adapter, ENVELOPE_EVENT, id, "{}");
    peer_answer(&scene.adapter, ENVELOPE_REPLY, id, "{}");
    peer_call(&scene.caller, 1, "sandbox::list", "{}"); /* the id is free again */
    peer_answer(&scene.adapter, ENVELOPE_REPLY, peer_expect_call(&scene.adapter, "list"), "[]");
    peer_expect_answer(&scene.caller, ENVELOPE_REPLY, 1, "[]");
    scene_close(&scene);
}
END_TEST

START_TEST(test_deadline)
{
    struct scene scene;

    scene_open(&scene);
    peer_send(&scene.caller, &(struct envelope){ .kind = ENVELOPE_CALL,
                                                 .id = 1,
                                                 .operation = span_of_text("sandbox::exec"),
                                                 .deadline_ms = 30,
                                                 .body = span_of_text("{}") });
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 1, "\"code\":\"timeout\"");
    (void)peer_expect_call(&scene.adapter, "exec");
    peer_expect(&scene.adapter, ENVELOPE_CANCEL);
    peer_close(&scene.adapter); /* a tombstone goes without a word */
    TURN_UNTIL(scene.fixture.loop, scene.fixture.router.passthrough.in_use == 0);
    peer_call(&scene.caller, 2, "sandbox::list", "{}");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 2, "S301");
    peer_as_adapter(&scene.adapter, &scene.fixture, "mock");
    scene_close(&scene);
}
END_TEST

START_TEST(test_answers_that_fit_nothing)
{
    struct scene scene;
    struct peer other;
    uint64_t id;

    scene_open(&scene);
    peer_call(&scene.caller, 1, "sandbox::list", "{}");
    id = peer_expect_call(&scene.adapter, "list");
    peer_answer(&scene.adapter, ENVELOPE_REPLY, id, "[1]");
    peer_expect_answer(&scene.caller, ENVELOPE_REPLY, 1, "[1]");
    peer_answer(&scene.adapter, ENVELOPE_REPLY, id, "[2]"); /* again: dropped */
    TURN_UNTIL(scene.fixture.loop, scene.fixture.router.metrics.late_answers == 1);
    ck_assert(!scene.adapter.closed);

    /* Of another adapter's call, and of none at all: closed. */
    peer_call(&scene.caller, 2, "sandbox::list", "{}");
    id = peer_expect_call(&scene.adapter, "list");
    peer_as_adapter(&other, &scene.fixture, "other");
    peer_answer(&other, ENVELOPE_REPLY, id, "[\"stolen\"]");
    TURN_UNTIL(scene.fixture.loop, other.closed);
    peer_answer(&scene.adapter, ENVELOPE_REPLY, id, "[\"right\"]");
    peer_expect_answer(&scene.caller, ENVELOPE_REPLY, 2, "right");
    peer_answer(&scene.adapter, ENVELOPE_REPLY, 999999, "{}");
    TURN_UNTIL(scene.fixture.loop, scene.adapter.closed);
    peer_close(&other);
    scene_close(&scene);
}
END_TEST

START_TEST(test_calls_of_one_connection_are_limited)
{
    struct scene scene;

    scene_open(&scene);
    for (unsigned i = 0; i <= CALLER_CALLS_MAX; i++)
        peer_call(&scene.caller, i, "sandbox::exec", "{}");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, CALLER_CALLS_MAX, "\"S400\"");
    for (unsigned i = 0; i < CALLER_CALLS_MAX; i++)
        peer_answer(&scene.adapter, ENVELOPE_REPLY, peer_expect_call(&scene.adapter, "exec"),
                    "{}");
    for (unsigned i = 0; i < CALLER_CALLS_MAX; i++)
        peer_expect(&scene.caller, ENVELOPE_REPLY);
    peer_call(&scene.caller, 1, "sandbox::list", "{}");
    (void)peer_expect_call(&scene.adapter, "list");
    scene_close(&scene);
}
END_TEST

/* Cancelling does not make room before the adapter has answered. */
START_TEST(test_cancelled_calls_count)
{
    struct scene scene;
    uint64_t first = 0;

    scene_open(&scene);
    for (unsigned i = 0; i < CALLER_CALLS_MAX; i++) {
        uint64_t id;

        peer_call(&scene.caller, i, "sandbox::exec", "{}");
        peer_send(&scene.caller, &(struct envelope){ .kind = ENVELOPE_CANCEL, .id = i });
        id = peer_expect_call(&scene.adapter, "exec");
        first = i == 0 ? id : first;
        peer_expect(&scene.adapter, ENVELOPE_CANCEL);
        peer_expect(&scene.caller, ENVELOPE_ERROR);
    }
    peer_call(&scene.caller, 1, "sandbox::exec", "{}");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 1, "\"S400\"");
    peer_answer(&scene.adapter, ENVELOPE_REPLY, first, "{}");
    TURN_UNTIL(scene.fixture.loop,
               scene.fixture.router.passthrough.in_use == CALLER_CALLS_MAX - 1);
    peer_call(&scene.caller, 1, "sandbox::exec", "{}");
    (void)peer_expect_call(&scene.adapter, "exec");
    peer_close(&scene.caller);
    peer_expect(&scene.adapter, ENVELOPE_CANCEL); /* for that one alone */
    peer_as_caller(&scene.caller, &scene.fixture);
    ck_assert_ptr_eq(scene.adapter.received.next, &scene.adapter.received);
    scene_close(&scene);
}
END_TEST

START_TEST(test_too_large)
{
    struct scene scene;
    size_t size;
    char *body;

    scene_open(&scene);
    size = route_max_body_bytes(&scene.fixture.router) + 1;
    body = malloc(size + 1);
    ck_assert_ptr_nonnull(body);
    memset(body, ' ', size);
    body[size] = '\0';
    peer_call(&scene.caller, 1, "sandbox::exec", body);
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 1, "invocation_failed");
    body[size - 1] = '\0';
    peer_call(&scene.caller, 2, "sandbox::exec", body);
    peer_answer(&scene.adapter, ENVELOPE_REPLY, peer_expect_call(&scene.adapter, "exec"), body);
    peer_expect(&scene.caller, ENVELOPE_REPLY);
    free(body);
    scene_close(&scene);
}
END_TEST

/* It answers PINGs and no call: its debt does not grow until nobody can call anybody. */
START_TEST(test_an_adapter_that_owes_too_much)
{
    struct scene scene;

    scene_open(&scene);
    for (unsigned owed = 0; !scene.adapter.closed; owed++) {
        ck_assert_uint_le(scene.fixture.router.passthrough.in_use, ADAPTER_OWED_MAX + 1);
        if (owed > 0 && owed % CALLER_CALLS_MAX == 0) { /* the next caller */
            peer_close(&scene.caller);
            peer_as_caller(&scene.caller, &scene.fixture);
        }
        peer_call(&scene.caller, owed, "sandbox::exec", "{}");
        peer_send(&scene.caller, &(struct envelope){ .kind = ENVELOPE_CANCEL, .id = owed });
        peer_expect(&scene.caller, ENVELOPE_ERROR);
    }
    TURN_UNTIL(scene.fixture.loop, scene.fixture.router.passthrough.in_use == 0);
    ck_assert_int_eq(scene.fixture.router.binding.state, BINDING_WAITING);
    scene_close(&scene);
}
END_TEST

/* A front's calls without an answer (`detached`) outlive their caller. */
static void no_answer(void *ctx, uint64_t tag, const struct answer *answer)
{
    ck_abort_msg("a detached call was answered");
}

static void no_event(void *ctx, uint64_t tag, struct span body)
{
    ck_abort_msg("a detached call had an event");
}

START_TEST(test_detached)
{
    static const struct caller_events events = { .answer = no_answer, .event = no_event };
    struct call call = { .function = span_of_text("sandbox::exec"),
                         .body = span_of_text("{}"),
                         .deadline_ms = ENVELOPE_NO_DEADLINE,
                         .wants_events = true,
                         .detached = true };
    struct caller caller;
    struct scene scene;
    uint64_t id;

    scene_open(&scene);
    caller_init(&caller, &events, NULL);
    ck_assert_ptr_null(route_call(&scene.fixture.router, &caller, &call));
    id = peer_expect_call(&scene.adapter, "exec");
    route_caller_gone(&caller);
    ck_assert_uint_eq(scene.fixture.router.passthrough.open, 1); /* a shutdown waits for it */
    peer_answer(&scene.adapter, ENVELOPE_EVENT, id, "{}");
    peer_answer(&scene.adapter, ENVELOPE_REPLY, id, "{}");
    TURN_UNTIL(scene.fixture.loop, scene.fixture.router.passthrough.in_use == 0);
    ck_assert_uint_eq(scene.adapter.received_count, 2); /* WELCOME, CALL: no CANCEL */
    call.function = span_of_text("sandbox::nope");
    ck_assert_ptr_null(route_call(&scene.fixture.router, &caller, &call));
    scene_close(&scene);
}
END_TEST

/* Swap under load: what was forwarded ends on the old one, what comes later goes to the new. */
START_TEST(test_swap)
{
    enum { CALLS = 200 };
    struct scene scene;
    struct peer other;
    uint64_t ids[CALLS];

    scene_open(&scene);
    peer_as_adapter(&other, &scene.fixture, "other");
    for (unsigned i = 0; i < CALLS; i++) {
        peer_call(&scene.caller, i, "sandbox::exec", "{}");
        ids[i] = peer_expect_call(&scene.adapter, "exec");
    }
    fixture_reload(&scene.fixture, "  adapter: other\n");
    ck_assert_str_eq(route_status(&scene.fixture.router), "bound");
    for (unsigned i = 0; i < CALLS; i++) {
        peer_call(&scene.caller, CALLS + i, "sandbox::exec", "{}");
        peer_answer(&other, ENVELOPE_REPLY, peer_expect_call(&other, "exec"), "\"new\"");
        peer_expect_answer(&scene.caller, ENVELOPE_REPLY, CALLS + i, "new");
        peer_answer(&scene.adapter, ENVELOPE_REPLY, ids[i], "\"old\"");
        peer_expect_answer(&scene.caller, ENVELOPE_REPLY, i, "old");
    }
    ck_assert_uint_eq(scene.adapter.received_count, CALLS + 1);

    /* To one that is not there, and to none. */
    fixture_reload(&scene.fixture, "  adapter: third\n");
    peer_call(&scene.caller, 1, "sandbox::list", "{}");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 1, "adapter third is not connected");
    fixture_reload(&scene.fixture, "");
    peer_call(&scene.caller, 2, "sandbox::list", "{}");
    peer_expect_answer(&scene.caller, ENVELOPE_ERROR, 2, "S303");
    fixture_reload(&scene.fixture, mock);
    peer_call(&scene.caller, 3, "sandbox::list", "{}");
    (void)peer_expect_call(&scene.adapter, "list");
    peer_close(&other);
    scene_close(&scene);
}
END_TEST

UNIT_MAIN("router.passthrough", test_bytes_are_kept, test_the_whole_message_is_kept,
          test_what_a_call_carries, test_any_order_and_equal_ids, test_loss, test_caller_leaves,
          test_cancel_is_answered_once, test_deadline, test_answers_that_fit_nothing,
          test_calls_of_one_connection_are_limited, test_cancelled_calls_count,
          test_an_adapter_that_owes_too_much, test_too_large, test_detached, test_swap)
