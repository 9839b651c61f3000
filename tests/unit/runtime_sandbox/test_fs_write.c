/* test_fs_write.c - fs::write from the request and from a channel (contract 8.10, 9). */
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "unit.h"

static struct machine *machine;
static char id[37];

static void open_one(const char *extra)
{
    scene_open(extra);
    machine = scene_create("", id);
}

static uint64_t write_call(const char *members)
{
    return scene_call("fs::write", "{\"sandbox_id\":\"%s\",\"path\":\"/f\"%s}", id, members);
}

static struct guest_call *guest_write(void)
{
    return fake_guest_call(machine->guest, GUEST_fs_write);
}

static void reply_written(struct guest_call *call)
{
    guest_call_reply(machine->guest, call,
                     &(struct guest_fs_write_reply){ .bytes_written = call->input.size });
}

START_TEST(test_text)
{
    struct guest_call *call;
    const struct fs_write_request *request;
    uint64_t answer;

    open_one("");
    answer = write_call(",\"content\":\"a\\u0000\u20ac\",\"mode\":\"0600\",\"parents\":true");
    call = guest_write();
    request = call->request;
    TURN_UNTIL(fixture.loop, call->input_ended);
    ck_assert_str_eq(request->path, "/f");
    ck_assert_str_eq(request->mode, "0600");
    ck_assert(request->parents);
    ck_assert(!request->has_content && !request->has_content_b64);
    ck_assert_uint_eq(call->input.size, 5);
    ck_assert_int_eq(memcmp(call->input.data, "a\0\xe2\x82\xac", 5), 0);
    ck_assert_ptr_null(call->input_abort);
    reply_written(call);
    fixture_expect_reply(answer, "{\"bytes_written\":5,\"path\":\"/f\"}");
    scene_close();
}
END_TEST

START_TEST(test_base64_and_empty)
{
    struct guest_call *call;
    uint64_t answer;

    open_one("");
    answer = write_call(",\"content_b64\":\"/wA=\"");
    call = guest_write();
    TURN_UNTIL(fixture.loop, call->input_ended);
    ck_assert_int_eq(memcmp(call->input.data, "\xff\0", 2), 0);
    reply_written(call);
    fixture_expect_reply(answer, "{\"bytes_written\":2,\"path\":\"/f\"}");
    answer = write_call(",\"content\":\"\"");
    call = guest_write();
    TURN_UNTIL(fixture.loop, call->input_ended);
    ck_assert_uint_eq(call->input.size, 0);
    reply_written(call);
    fixture_expect_reply(answer, "{\"bytes_written\":0,\"path\":\"/f\"}");
    scene_close();
}
END_TEST

START_TEST(test_form_is_checked_first)
{
    static const char *const bad[][2] = {
        { "", "exactly one" },
        { ",\"content\":\"\",\"content_b64\":\"\"", "exactly one" },
        { ",\"content_b64\":\"Zg\"", "content_b64" },
        { ",\"content\":{\"channel_id\":\"c\",\"access_key\":\"k\",\"direction\":\"write\"}",
          "content.direction" },
    };

    open_one("");
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        scene_expect(
            scene_call("fs::write", "{\"sandbox_id\":\"?\",\"path\":\"/f\"%s}", bad[i][0]),
            "S001", bad[i][1]);
    scene_expect(
        scene_call("fs::write", "{\"sandbox_id\":\"?\",\"path\":\"/f\",\"content\":\"\"}"),
        "S001", "sandbox_id");
    scene_close();
}
END_TEST

START_TEST(test_refused_before_its_end)
{
    struct guest_call *call;
    uint64_t answer;

    open_one("");
    machine->guest->gives_no_credit = true;
    answer = write_call(",\"content\":\"x\"");
    call = guest_write();
    guest_call_error(machine->guest, call, "S211", "/: no such directory", true);
    scene_expect(answer, "S211", "\"fix\":{\"parents\":true}");
    scene_close();
}
END_TEST

START_TEST(test_lost_is_io)
{
    uint64_t answer;

    open_one("");
    answer = write_call(",\"content\":\"x\"");
    (void)guest_write();
    fake_machine_die(machine, "gone", "");
    scene_expect(answer, "S216", "/f: shell client error: its machine ended: gone");
    scene_close();
}
END_TEST

START_TEST(test_not_cancelled_by_a_leaving_caller)
{
    struct guest_call *call;
    uint64_t answer;

    open_one("");
    answer = write_call(",\"content\":\"x\"");
    call = guest_write();
    TURN_UNTIL(fixture.loop, call->input_ended);
    scene_cancel(answer);
    scene_expect(answer, "S216", "/f: its caller is gone");
    ck_assert(!call->cancelled);
    reply_written(call);
    scene_close();
}
END_TEST

/* From a channel. */

struct stream {
    uint64_t answer;
    struct guest_call *call;
    uint64_t channel; /* id of the adapter's OPEN */
};

static struct stream open_stream(const char *extra)
{
    struct stream stream;
    struct message *open;

    open_one(extra);
    stream.answer = write_call(",\"content\":{\"channel_id\":\"chan\",\"access_key\":\"key\","
                               "\"direction\":\"read\"}");
    stream.call = guest_write();
    open = fixture_next(ENVELOPE_OPEN);
    ck_assert(span_equals(open->envelope.channel_id, "chan"));
    ck_assert(span_equals(open->envelope.access_key, "key"));
    ck_assert(!open->envelope.write);
    stream.channel = open->envelope.id;
    free(open);
    return stream;
}

static void send_data(const struct stream *stream, const void *data, size_t size)
{
    fixture_send(&(struct envelope){
        .kind = ENVELOPE_DATA, .id = stream->channel, .body = { .data = data, .size = size } });
}

static void send_close(const struct stream *stream, const char *code, const char *reason)
{
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CLOSE,
                                     .id = stream->channel,
                                     .code = span_of_text(code),
                                     .message = span_of_text(reason) });
}

START_TEST(test_stream)
{
    struct stream stream = open_stream("");

    send_data(&stream, "hello ", 6);
    send_data(&stream, "world", 5);
    TURN_UNTIL(fixture.loop, stream.call->input.size == 11);
    ck_assert(!stream.call->input_ended);
    send_close(&stream, NULL, NULL);
    TURN_UNTIL(fixture.loop, stream.call->input_ended);
    ck_assert_ptr_null(stream.call->input_abort);
    ck_assert(scene_unanswered(stream.answer));
    reply_written(stream.call);
    fixture_expect_reply(stream.answer, "{\"bytes_written\":11,\"path\":\"/f\"}");
    scene_close();
}
END_TEST

START_TEST(test_slow_guest_holds_the_writer_back)
{
    static uint8_t bytes[ENVELOPE_DATA_MAX_BYTES];
    struct stream stream = open_stream("    stream_idle_timeout_ms: 1000\n");

    machine->guest->gives_no_credit = true;
    for (unsigned i = 0; i < 8; i++) { /* the guest's window, then the channel's */
        if (i == 4)
            free(fixture_next(ENVELOPE_CREDIT));
        send_data(&stream, bytes, sizeof(bytes));
    }
    TURN_UNTIL(fixture.loop, stream.call->input.size == AGENT_WINDOW_BYTES);
    free(scene_list()); /* what was sent before it has come */
    scene_pass(5000);   /* not the writer's fault */
    ck_assert(scene_unanswered(stream.answer));
    send_close(&stream, NULL, NULL);
    turn_for(fixture.loop, 20);
    ck_assert(!stream.call->input_ended);
    fake_guest_frame(machine->guest, &(struct agent_frame){ .kind = AGENT_FRAME_CREDIT,
                                                            .id = stream.call->id,
                                                            .credit = AGENT_WINDOW_BYTES });
    TURN_UNTIL(fixture.loop, stream.call->input_ended);
    ck_assert_uint_eq(stream.call->input.size, 8 * sizeof(bytes));
    reply_written(stream.call);
    scene_expect(stream.answer, NULL, "524288");
    scene_close();
}
END_TEST

static void expect_aborted(const struct stream *stream, const char *text)
{
    TURN_UNTIL(fixture.loop, stream->call->input_ended);
    ck_assert_ptr_nonnull(stream->call->input_abort);
    ck_assert(scene_unanswered(stream->answer));
    guest_call_error(machine->guest, stream->call, "S218", "removed", false);
    scene_expect(stream->answer, "S218", text);
}

START_TEST(test_writer_breaks_off)
{
    struct stream stream = open_stream("");

    send_data(&stream, "abc", 3);
    send_close(&stream, "S218", "the writer left");
    expect_aborted(&stream, "/f: the stream was aborted after 3 bytes: the writer left");
    scene_close();
}
END_TEST

START_TEST(test_cannot_be_attached)
{
    struct stream stream = open_stream("");

    send_close(&stream, "S218", "refused");
    expect_aborted(&stream, "after 0 bytes: refused");
    scene_close();
}
END_TEST

START_TEST(test_no_first_byte)
{
    struct stream stream = open_stream("");

    scene_pass(24000);
    ck_assert(!stream.call->input_ended);
    scene_pass(1500);
    expect_aborted(&stream, "no byte and no end came within 25000 ms");
    scene_close();
}
END_TEST

START_TEST(test_no_next_chunk)
{
    struct stream stream = open_stream("    stream_idle_timeout_ms: 2000\n");

    send_data(&stream, "abc", 3);
    TURN_UNTIL(fixture.loop, stream.call->input.size == 3);
    scene_pass(1500);
    ck_assert(!stream.call->input_ended);
    scene_pass(1000);
    expect_aborted(&stream, "stream_idle_timeout_ms 2000");
    scene_close();
}
END_TEST

START_TEST(test_the_guest_does_not_confirm_the_abort)
{
    struct stream stream = open_stream("");

    send_close(&stream, "S218", "left");
    TURN_UNTIL(fixture.loop, stream.call->input_ended);
    scene_pass(1500);
    ck_assert(scene_unanswered(stream.answer));
    scene_pass(1000);
    scene_expect(stream.answer, "S218", "left");
    scene_close();
}
END_TEST

START_TEST(test_stream_lost)
{
    struct stream stream = open_stream("");

    fake_machine_die(machine, "off", "");
    scene_expect(stream.answer, "S218", "its machine ended: off");
    scene_close();
}
END_TEST

START_TEST(test_stream_cancelled)
{
    struct stream stream = open_stream("");

    scene_cancel(stream.answer);
    expect_aborted(&stream, "its caller is gone");
    scene_close();
}
END_TEST

START_TEST(test_stream_refused_by_the_guest)
{
    struct stream stream = open_stream("");

    guest_call_error(machine->guest, stream.call, "S212", "/f is a directory", false);
    scene_expect(stream.answer, "S212", "/f is a directory");
    free(fixture_next(ENVELOPE_CLOSE));
    scene_close();
}
END_TEST

START_TEST(test_stream_ended_by_a_lying_guest)
{
    struct stream stream = open_stream("");

    send_data(&stream, "abc", 3);
    TURN_UNTIL(fixture.loop, stream.call->input.size == 3);
    reply_written(stream.call);
    scene_expect(stream.answer, "S218", "before the stream's end");
    scene_close();
}
END_TEST

UNIT_MAIN("fs_write", test_text, test_base64_and_empty, test_form_is_checked_first,
          test_refused_before_its_end, test_lost_is_io, test_not_cancelled_by_a_leaving_caller,
          test_stream, test_slow_guest_holds_the_writer_back, test_writer_breaks_off,
          test_cannot_be_attached, test_no_first_byte, test_no_next_chunk,
          test_the_guest_does_not_confirm_the_abort, test_stream_lost, test_stream_cancelled,
          test_stream_refused_by_the_guest, test_stream_ended_by_a_lying_guest)
