/* test_live_output.c - exec and run with `stream`: channels instead of a captured reply
 * (docs/live-output.md). */
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "unit.h"

enum { STDOUT, STDERR, RESULT, CHANNELS };

static struct machine *machine;
static char id[37];
/* Ids of the adapter's OPENs, by the channel's use. */
static uint64_t opened[CHANNELS];

static void open_one(void)
{
    scene_open("");
    machine = scene_create("", id);
}

/* The router makes three channels; each is named by its turn. */
static void make_channels(void)
{
    uint64_t in_order[CHANNELS];

    for (unsigned i = 0; i < CHANNELS; i++) {
        struct message *create = fixture_next(ENVELOPE_CALL), *open;
        char body[256];

        ck_assert(span_equals(create->envelope.operation, "engine::channels::create"));
        (void)snprintf(body, sizeof(body),
                       "{\"writer\":{\"channel_id\":\"c%u\",\"access_key\":\"w\","
                       "\"direction\":\"write\"},\"reader\":{\"channel_id\":\"c%u\","
                       "\"access_key\":\"r\",\"direction\":\"read\"}}",
                       i, i);
        fixture_send(&(struct envelope){
            .kind = ENVELOPE_REPLY, .id = create->envelope.id, .body = span_of_text(body) });
        free(create);
        open = fixture_next(ENVELOPE_OPEN);
        ck_assert(open->envelope.write);
        in_order[i] = open->envelope.id;
        free(open);
    }
    opened[RESULT] = in_order[0];
    opened[STDOUT] = in_order[1];
    opened[STDERR] = in_order[2];
}

static void attach(int channel)
{
    fixture_send(&(struct envelope){
        .kind = ENVELOPE_CREDIT, .id = opened[channel], .credit = 1 << 20 });
}

static void leave(int channel)
{
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CLOSE,
                                     .id = opened[channel],
                                     .code = span_of_text("S218"),
                                     .message = span_of_text("the reader left") });
}

static void tell_started(struct guest_call *call)
{
    fake_guest_map(machine->guest, AGENT_FRAME_HEAD, call->id, &type_guest_empty,
                   &(struct guest_empty){ 0 });
}

/* The next bytes or the end of a channel, as text; "S218 why" of an abort. */
static char *next_of(int channel)
{
    for (;;) {
        struct message *message;
        char *text = NULL;

        TURN_UNTIL(fixture.loop, !list_empty(&fixture.messages));
        message = LIST_ENTRY(list_pop(&fixture.messages), struct message, node);
        if (message->envelope.id == opened[channel] && message->envelope.kind == ENVELOPE_DATA)
            text = strndup(message->envelope.body.data, message->envelope.body.size);
        else if (message->envelope.id == opened[channel] &&
                 message->envelope.kind == ENVELOPE_CLOSE)
            ck_assert_int_ge(
                asprintf(&text, "%.*s end", (int)message->envelope.code.size,
                         message->envelope.code.data ? message->envelope.code.data : ""),
                0);
        free(message);
        if (text)
            return text;
    }
}

static void expect_next(int channel, const char *text)
{
    _cleanup_free_ char *got = next_of(channel);

    ck_assert_msg(strstr(got, text) != NULL, "got %s, wanted %s", got, text);
}

/* An exec that was answered with its channels. */
static struct guest_call *streaming(const char *members)
{
    uint64_t answer = scene_call(
        "exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",\"stream\":true%s}", id, members);
    struct guest_call *call;

    make_channels();
    call = fake_guest_call(machine->guest, GUEST_exec);
    ck_assert(((const struct guest_exec *)call->request)->announce);
    ck_assert(scene_unanswered(answer));
    tell_started(call);
    scene_expect(answer, NULL,
                 "\"stdout_stream\":{\"channel_id\":\"c1\",\"access_key\":\"r\","
                 "\"direction\":\"read\"},\"stderr_stream\":{\"channel_id\":\"c2\"");
    return call;
}

START_TEST(test_bytes_come_before_the_end)
{
    struct guest_call *call;

    open_one();
    call = streaming("");
    for (int i = 0; i < CHANNELS; i++)
        attach(i);
    guest_call_data(machine->guest, call, 1, "first\xff", 6);
    expect_next(STDOUT, "first\xff");
    guest_call_data(machine->guest, call, 2, "oops", 4);
    expect_next(STDERR, "oops");
    guest_call_exit(machine->guest, call, 3);
    expect_next(RESULT, "{\"reply\":{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":3,");
    expect_next(RESULT, " end");
    scene_close();
}
END_TEST

START_TEST(test_a_reply_without_a_start_is_a_result)
{
    struct guest_call *call;
    uint64_t answer;

    open_one();
    answer = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",\"stream\":true}", id);
    make_channels();
    call = fake_guest_call(machine->guest, GUEST_exec);
    guest_call_exit(machine->guest, call, 127);
    scene_expect(answer, NULL, "\"result_stream\":");
    attach(RESULT);
    expect_next(RESULT, "\"exit_code\":127");
    scene_close();
}
END_TEST

START_TEST(test_a_failed_start_is_an_error)
{
    uint64_t answer;

    open_one();
    answer = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",\"stream\":true}", id);
    make_channels();
    guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_exec), "S300",
                     "no fork", false);
    scene_expect(answer, "S300", "\"outcome\":\"never_ran\"");
    answer = scene_call(
        "exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",\"stream\":true,\"timeout_ms\":0}", id);
    make_channels();
    scene_expect(answer, "S200", "partial");
    scene_close();
}
END_TEST

START_TEST(test_keys_that_do_not_fit)
{
#define REF(direction)                                                                         \
    "{\"channel_id\":\"a\",\"access_key\":\"b\",\"direction\":\"" direction "\"}"
    static const struct {
        const char *members, *says;
    } wrong[] = {
        { "\"stdin_stream\":" REF("read"), "stdin_stream" },
        { "\"stream\":true,\"stdin\":\"\",\"stdin_stream\":" REF("read"), "stdin_stream" },
        { "\"stream\":true,\"stdin_stream\":" REF("write"), "direction" },
        { "\"stream\":true,\"idempotency_key\":\"k\"", "idempotency_key" },
        { "\"stream\":1", "stream" },
    };

    open_one();
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        scene_expect(scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",%s}", id,
                                wrong[i].members),
                     "S001", wrong[i].says);
        scene_expect(scene_call("run", "{\"image\":\"img\",\"lang\":\"sh\",\"code\":\"\",%s}",
                                wrong[i].members),
                     "S001", wrong[i].says);
    }
    scene_close();
}
END_TEST

START_TEST(test_unattached_output_waits_then_is_dropped)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    struct guest_call *call;

    open_one();
    call = streaming("");
    for (size_t sent = 0; sent < AGENT_WINDOW_BYTES; sent += sizeof(bytes))
        guest_call_data(machine->guest, call, 1, bytes, sizeof(bytes));
    scene_pass(9000);
    ck_assert_uint_eq(call->credit[1], 0);
    scene_pass(2000);
    expect_next(STDOUT, "S218 end");
    TURN_UNTIL(fixture.loop, call->credit[1] == AGENT_WINDOW_BYTES);
    guest_call_data(machine->guest, call, 1, bytes, sizeof(bytes));
    guest_call_exit(machine->guest, call, 0);
    attach(RESULT);
    expect_next(RESULT, "\"exit_code\":0");
    scene_close();
}
END_TEST

START_TEST(test_a_slow_reader_slows_the_program)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    struct guest_call *call;

    open_one();
    call = streaming("");
    fixture_send(
        &(struct envelope){ .kind = ENVELOPE_CREDIT, .id = opened[STDOUT], .credit = 1 });
    for (size_t sent = 0; sent < AGENT_WINDOW_BYTES; sent += sizeof(bytes))
        guest_call_data(machine->guest, call, 1, bytes, sizeof(bytes));
    scene_pass(20000);
    ck_assert_uint_eq(call->credit[1], 0);
    attach(STDOUT);
    TURN_UNTIL(fixture.loop, call->credit[1] > AGENT_WINDOW_BYTES / 2);
    guest_call_exit(machine->guest, call, 0);
    scene_close();
}
END_TEST

START_TEST(test_a_reader_of_output_may_leave)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    struct guest_call *call;

    open_one();
    call = streaming("");
    attach(STDOUT);
    attach(RESULT);
    guest_call_data(machine->guest, call, 1, "x", 1);
    expect_next(STDOUT, "x");
    leave(STDOUT);
    turn_for(fixture.loop, 20);
    for (unsigned i = 1; i <= 8; i++) {
        guest_call_data(machine->guest, call, 1, bytes, sizeof(bytes));
        TURN_UNTIL(fixture.loop, call->credit[1] >= i * sizeof(bytes));
    }
    ck_assert(!call->cancelled);
    guest_call_exit(machine->guest, call, 0);
    expect_next(RESULT, "\"exit_code\":0");
    scene_close();
}
END_TEST

START_TEST(test_the_reader_of_the_result_leaves)
{
    struct guest_call *call;

    open_one();
    call = streaming("");
    attach(RESULT);
    turn_for(fixture.loop, 20);
    leave(RESULT);
    TURN_UNTIL(fixture.loop, call->cancelled);
    guest_call_reply(machine->guest, call,
                     &(struct guest_exec_reply){ .exit_code = 137, .cancelled = true });
    TURN_UNTIL(fixture.loop, !fake_guest_has_call(machine->guest, GUEST_exec));
    turn_for(fixture.loop, 20);
    {
        _cleanup_free_ char *list = scene_list();

        ck_assert_ptr_nonnull(strstr(list, "\"exec_in_flight\":0"));
    }
    scene_close();
}
END_TEST

START_TEST(test_timeout_is_in_the_result)
{
    struct guest_call *call;

    open_one();
    call = streaming(",\"timeout_ms\":1000");
    attach(RESULT);
    guest_call_data(machine->guest, call, 1, "partly", 6);
    scene_pass(1100);
    TURN_UNTIL(fixture.loop, call->cancelled);
    guest_call_reply(machine->guest, call,
                     &(struct guest_exec_reply){ .exit_code = 137, .cancelled = true });
    expect_next(RESULT, "{\"error\":{\"type\":\"execution\",\"code\":\"S200\"");
    expect_next(RESULT, " end");
    scene_close();
}
END_TEST

/* The id of the adapter's OPEN of stdin. */
static uint64_t stdin_opened(void)
{
    struct message *open = fixture_next(ENVELOPE_OPEN);
    uint64_t channel = open->envelope.id;

    ck_assert(!open->envelope.write);
    ck_assert(span_equals(open->envelope.channel_id, "in"));
    free(open);
    return channel;
}

#define STDIN                                                                                  \
    ",\"stdin_stream\":{\"channel_id\":\"in\",\"access_key\":\"k\",\"direction\":\"read\"}"

START_TEST(test_stdin_comes_through_a_channel)
{
    struct guest_call *call;
    uint64_t answer, channel;

    open_one();
    answer = scene_call("exec",
                        "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",\"stream\":true" STDIN "}", id);
    make_channels();
    call = fake_guest_call(machine->guest, GUEST_exec);
    ck_assert(((const struct guest_exec *)call->request)->has_stdin);
    channel = stdin_opened();
    tell_started(call);
    scene_expect(answer, NULL, "result_stream");
    fixture_send(&(struct envelope){
        .kind = ENVELOPE_DATA, .id = channel, .body = span_of_text("hello") });
    TURN_UNTIL(fixture.loop, call->input.size == 5);
    ck_assert(!call->input_ended);
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CLOSE, .id = channel });
    TURN_UNTIL(fixture.loop, call->input_ended);
    guest_call_exit(machine->guest, call, 0);
    attach(RESULT);
    expect_next(RESULT, "\"exit_code\":0");
    scene_close();
}
END_TEST

START_TEST(test_broken_stdin_kills)
{
    struct guest_call *call;
    uint64_t answer, channel;

    open_one();
    answer = scene_call("exec",
                        "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",\"stream\":true" STDIN "}", id);
    make_channels();
    call = fake_guest_call(machine->guest, GUEST_exec);
    channel = stdin_opened();
    tell_started(call);
    scene_expect(answer, NULL, "result_stream");
    fixture_send(&(struct envelope){
        .kind = ENVELOPE_DATA, .id = channel, .body = span_of_text("half") });
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CLOSE,
                                     .id = channel,
                                     .code = span_of_text("S218"),
                                     .message = span_of_text("lost") });
    TURN_UNTIL(fixture.loop, call->cancelled);
    ck_assert(!call->input_ended);
    guest_call_reply(machine->guest, call,
                     &(struct guest_exec_reply){ .exit_code = 137, .cancelled = true });
    attach(RESULT);
    expect_next(RESULT, "\"code\":\"S218\"");
    scene_close();
}
END_TEST

START_TEST(test_a_caller_that_leaves_before_the_start)
{
    uint64_t answer;

    open_one();
    answer = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",\"stream\":true}", id);
    free(fixture_next(ENVELOPE_CALL));
    scene_cancel(answer);
    scene_expect(answer, "S300", "never_ran");
    ck_assert_ptr_null(fake_guest_has_call(machine->guest, GUEST_exec));
    scene_close();
}
END_TEST

UNIT_MAIN("live_output", test_bytes_come_before_the_end,
          test_a_reply_without_a_start_is_a_result, test_a_failed_start_is_an_error,
          test_keys_that_do_not_fit, test_unattached_output_waits_then_is_dropped,
          test_a_slow_reader_slows_the_program, test_a_reader_of_output_may_leave,
          test_the_reader_of_the_result_leaves, test_timeout_is_in_the_result,
          test_stdin_comes_through_a_channel, test_broken_stdin_kills,
          test_a_caller_that_leaves_before_the_start)
