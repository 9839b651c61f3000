/* test_fs_read.c - fs::read: head, body, lazy channel (contract 8.11, 9). */
#include <stdio.h>
#include <string.h>

#include "held_reads.h"
#include "sandboxes.h"
#include "scene.h"
#include "unit.h"

#define CREATED                                                                                \
    "{\"writer\":{\"channel_id\":\"c\",\"access_key\":\"w\",\"direction\":\"write\"},"         \
    "\"reader\":{\"channel_id\":\"c\",\"access_key\":\"r\",\"direction\":\"read\"}}"
#define REF "\"content\":{\"channel_id\":\"c\",\"access_key\":\"r\",\"direction\":\"read\"}"

static struct machine *machine;
static char id[37];

static void open_one(void)
{
    scene_open("");
    machine = scene_create("", id);
}

static uint64_t read_call(void)
{
    return scene_call("fs::read", "{\"sandbox_id\":\"%s\",\"path\":\"/f\"}", id);
}

static struct guest_call *begin(uint64_t size)
{
    struct guest_call *call = fake_guest_call(machine->guest, GUEST_fs_read);
    const struct guest_fs_read_head head = { .size = size, .mode = "0644", .mtime = 99 };

    fake_guest_map(machine->guest, AGENT_FRAME_HEAD, call->id, &type_guest_fs_read_head, &head);
    return call;
}

static void finish(struct guest_call *call)
{
    guest_call_end(machine->guest, call, 1, NULL);
    guest_call_reply(machine->guest, call, &(struct guest_empty){ 0 });
}

/* The router makes the channel; the id of the adapter's OPEN. */
static uint64_t make_channel(void)
{
    struct message *create = fixture_next(ENVELOPE_CALL), *open;
    uint64_t channel;

    ck_assert(span_equals(create->envelope.operation, "engine::channels::create"));
    fixture_send(&(struct envelope){
        .kind = ENVELOPE_REPLY, .id = create->envelope.id, .body = span_of_text(CREATED) });
    free(create);
    open = fixture_next(ENVELOPE_OPEN);
    ck_assert(open->envelope.write);
    channel = open->envelope.id;
    free(open);
    return channel;
}

static void grant(uint64_t channel, uint64_t bytes)
{
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CREDIT, .id = channel, .credit = bytes });
}

/* All that comes until the clean end, or what CLOSE says. */
static char *drain(uint64_t channel, struct buf *to)
{
    for (;;) {
        struct message *message = NULL;
        char *said = NULL;
        bool closed;

        TURN_UNTIL(fixture.loop, !list_empty(&fixture.messages));
        message = LIST_ENTRY(list_pop(&fixture.messages), struct message, node);
        closed = message->envelope.kind == ENVELOPE_CLOSE && message->envelope.id == channel;
        if (message->envelope.kind == ENVELOPE_DATA)
            ck_assert_int_eq(
                buf_append(to, message->envelope.body.data, message->envelope.body.size), 0);
        if (closed && message->envelope.code.data)
            ck_assert_int_ge(asprintf(&said, "%.*s %.*s", (int)message->envelope.code.size,
                                      message->envelope.code.data,
                                      (int)message->envelope.message.size,
                                      message->envelope.message.data),
                             0);
        free(message);
        if (closed)
            return said;
    }
}

START_TEST(test_short_text)
{
    _cleanup_(buf_done)
    struct buf got = { 0 };
    struct guest_call *call;
    uint64_t answer, channel;

    open_one();
    answer = read_call();
    call = begin(5);
    guest_call_data(machine->guest, call, 1, "he", 2);
    guest_call_data(machine->guest, call, 1, "llo", 3);
    finish(call);
    channel = make_channel();
    fixture_expect_reply(answer, "{" REF ",\"body\":\"hello\",\"size\":5,\"mode\":\"0644\","
                                 "\"mtime\":99}");
    grant(channel, 1000);
    ck_assert_ptr_null(drain(channel, &got));
    ck_assert_str_eq(buf_text(&got), "hello");
    scene_close();
}
END_TEST

START_TEST(test_empty_file_and_file_that_grew)
{
    _cleanup_(buf_done)
    struct buf got = { 0 };
    struct guest_call *call;
    uint64_t answer, channel;

    open_one();
    answer = read_call();
    call = begin(0);
    finish(call);
    channel = make_channel();
    fixture_expect_reply(answer, "{" REF ",\"body\":\"\",\"size\":0,\"mode\":\"0644\","
                                 "\"mtime\":99}");
    grant(channel, 1);
    ck_assert_ptr_null(drain(channel, &got));
    ck_assert_uint_eq(got.size, 0);
    answer = read_call();
    call = begin(0);
    guest_call_data(machine->guest, call, 1, "grown", 5);
    finish(call);
    channel = make_channel();
    scene_expect(answer, NULL, "\"body\":\"grown\",\"size\":0");
    scene_close();
}
END_TEST

START_TEST(test_no_body_for_what_is_not_text)
{
    struct guest_call *call;
    uint64_t answer;

    open_one();
    answer = read_call();
    call = begin(2);
    guest_call_data(machine->guest, call, 1, "a\xff", 2);
    finish(call);
    (void)make_channel();
    fixture_expect_reply(answer, "{" REF ",\"size\":2,\"mode\":\"0644\",\"mtime\":99}");
    scene_close();
}
END_TEST

/* Sends SIZE bytes as the windows open. */
static void send_file(struct guest_call *call, size_t size, bool until_full)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    size_t sent = 0;

    memset(bytes, 'z', sizeof(bytes));
    while (sent < size) {
        size_t part = size - sent < sizeof(bytes) ? size - sent : sizeof(bytes);

        if (until_full && sent + part > AGENT_WINDOW_BYTES + call->credit[1])
            return;
        TURN_UNTIL(fixture.loop, sent + part <= AGENT_WINDOW_BYTES + call->credit[1]);
        guest_call_data(machine->guest, call, 1, bytes, part);
        sent += part;
    }
}

START_TEST(test_body_ends_below_a_mebibyte)
{
    struct guest_call *call;
    uint64_t answer, channel;
    _cleanup_(buf_done)
    struct buf got = { 0 };

    open_one();
    answer = read_call();
    call = begin((1 << 20) - 1);
    send_file(call, (1 << 20) - 1, false);
    finish(call);
    channel = make_channel();
    scene_expect(answer, NULL, "\"body\":\"zzz");
    grant(channel, 2 << 20);
    ck_assert_ptr_null(drain(channel, &got));
    ck_assert_uint_eq(got.size, (1 << 20) - 1);
    answer = read_call();
    call = begin(5); /* a lie: it is a mebibyte */
    send_file(call, 1 << 20, false);
    channel = make_channel();
    scene_expect(answer, NULL, REF ",\"size\":5");
    grant(channel, 2 << 20);
    finish(call);
    buf_clear(&got);
    ck_assert_ptr_null(drain(channel, &got));
    ck_assert_uint_eq(got.size, 1 << 20);
    scene_close();
}
END_TEST

START_TEST(test_big_file_is_produced_lazily)
{
    struct guest_call *call;
    uint64_t answer, channel;
    _cleanup_(buf_done)
    struct buf got = { 0 };

    open_one();
    answer = read_call();
    call = begin(3 << 20);
    send_file(call, 3 << 20, true);
    channel = make_channel();
    fixture_expect_reply(answer, "{" REF ",\"size\":3145728,\"mode\":\"0644\",\"mtime\":99}");
    turn_for(fixture.loop, 20);
    ck_assert_uint_eq(call->credit[1], 0);
    ck_assert_uint_le(sandboxes_held_reads(adapter_sandboxes(fixture.adapter))->bytes,
                      AGENT_WINDOW_BYTES);
    grant(channel, 1 << 20);
    TURN_UNTIL(fixture.loop, call->credit[1] >= AGENT_WINDOW_BYTES);
    ck_assert_uint_eq(sandboxes_held_reads(adapter_sandboxes(fixture.adapter))->bytes, 0);
    finish(call);
    ck_assert_ptr_null(drain(channel, &got));
    ck_assert_uint_eq(got.size, AGENT_WINDOW_BYTES);
    scene_close();
}
END_TEST

START_TEST(test_reader_that_takes_odd_pieces)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    _cleanup_(buf_done)
    struct buf got = { 0 };
    struct guest_call *call;
    uint64_t answer, channel;

    open_one();
    answer = read_call();
    call = begin(2 << 20);
    channel = make_channel();
    scene_expect(answer, NULL, REF);
    for (unsigned i = 0; i < 32; i++) {
        for (size_t at = 0; at < sizeof(bytes); at++)
            bytes[at] = (uint8_t)((i * sizeof(bytes) + at) % 251);
        TURN_UNTIL(fixture.loop,
                   (i + 1) * sizeof(bytes) <= AGENT_WINDOW_BYTES + call->credit[1]);
        guest_call_data(machine->guest, call, 1, bytes, sizeof(bytes));
        grant(channel, i == 31 ? 1 << 20 : sizeof(bytes) - 7 + 14 * (i % 2));
    }
    finish(call);
    ck_assert_ptr_null(drain(channel, &got));
    ck_assert_uint_eq(got.size, 32 * sizeof(bytes));
    for (size_t at = 0; at < got.size; at++) {
        if (got.data[at] != at % 251)
            ck_abort_msg("byte %zu is wrong", at);
    }
    scene_close();
}
END_TEST

START_TEST(test_errors_before_the_reply)
{
    struct guest_call *call;
    uint64_t answer;

    open_one();
    answer = read_call();
    guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_read), "S211",
                     "/f", false);
    scene_expect(answer, "S211", "/f");
    answer = read_call();
    call = begin(10);
    guest_call_data(machine->guest, call, 1, "12345", 5);
    guest_call_end(machine->guest, call, 1, "input/output error");
    guest_call_error(machine->guest, call, "S216", "/f: input/output error", false);
    scene_expect(answer, "S216", "/f: input/output error");
    answer = read_call();
    call = begin(2 << 20);
    free(fixture_next(ENVELOPE_CALL));
    guest_call_error(machine->guest, call, "S216", "/f: torn", false);
    scene_expect(answer, "S216", "/f: torn");
    scene_close();
}
END_TEST

START_TEST(test_router_makes_no_channel)
{
    struct message *create;
    uint64_t answer;

    open_one();
    answer = read_call();
    (void)begin(2 << 20);
    create = fixture_next(ENVELOPE_CALL);
    fixture_send(&(struct envelope){
        .kind = ENVELOPE_ERROR, .id = create->envelope.id, .body = span_of_text("{}") });
    free(create);
    scene_expect(answer, "S216", "no channel");
    scene_close();
}
END_TEST

/* A read of 2 MiB that was replied to. */
static uint64_t streaming(struct guest_call **ret_call)
{
    uint64_t answer, channel;

    open_one();
    answer = read_call();
    *ret_call = begin(2 << 20);
    channel = make_channel();
    scene_expect(answer, NULL, REF);
    return channel;
}

START_TEST(test_errors_after_the_reply)
{
    _cleanup_(buf_done)
    struct buf got = { 0 };
    _cleanup_free_ char *said = NULL;
    struct guest_call *call;
    uint64_t channel = streaming(&call);
    struct message *data;

    grant(channel, 100);
    guest_call_data(machine->guest, call, 1, "abc", 3);
    data = fixture_next(ENVELOPE_DATA);
    ck_assert(span_equals(data->envelope.body, "abc"));
    free(data);
    guest_call_error(machine->guest, call, "S216", "/f: bad block", false);
    said = drain(channel, &got);
    ck_assert_str_eq(said, "S216 /f: bad block");
    scene_close();
}
END_TEST

START_TEST(test_machine_lost_after_the_reply)
{
    _cleanup_(buf_done)
    struct buf got = { 0 };
    _cleanup_free_ char *said = NULL;
    struct guest_call *call;
    uint64_t channel = streaming(&call);

    fake_machine_die(machine, "off", "");
    said = drain(channel, &got);
    ck_assert_int_eq(strncmp(said, "S218 ", 5), 0);
    ck_assert_ptr_nonnull(strstr(said, "its machine ended: off"));
    scene_close();
}
END_TEST

START_TEST(test_held_text_ends_with_its_sandbox)
{
    _cleanup_(buf_done)
    struct buf got = { 0 };
    _cleanup_free_ char *said = NULL;
    struct guest_call *call;
    uint64_t answer, channel;

    open_one();
    answer = read_call();
    call = begin(1);
    guest_call_data(machine->guest, call, 1, "x", 1);
    finish(call);
    channel = make_channel();
    scene_expect(answer, NULL, "\"body\":\"x\"");
    fake_machine_die(machine, "off", "");
    said = drain(channel, &got);
    ck_assert_int_eq(strncmp(said, "S218 ", 5), 0);
    scene_close();
}
END_TEST

START_TEST(test_reader_that_takes_nothing)
{
    _cleanup_(buf_done)
    struct buf got = { 0 };
    _cleanup_free_ char *said = NULL;
    struct guest_call *call;
    uint64_t channel = streaming(&call);

    scene_pass(40000); /* nobody attached: the router's affair */
    grant(channel, 2);
    guest_call_data(machine->guest, call, 1, "abc", 3);
    scene_pass(28000);
    ck_assert_ptr_nonnull(fake_guest_has_call(machine->guest, GUEST_fs_read));
    ck_assert(!call->cancelled);
    scene_pass(4000);
    said = drain(channel, &got);
    ck_assert_ptr_nonnull(strstr(said, "took nothing for 30 s"));
    TURN_UNTIL(fixture.loop, call->cancelled);
    scene_close();
}
END_TEST

START_TEST(test_reader_leaves)
{
    struct guest_call *call;
    uint64_t channel = streaming(&call);

    fixture_send(&(struct envelope){ .kind = ENVELOPE_CLOSE,
                                     .id = channel,
                                     .code = span_of_text("S218"),
                                     .message = span_of_text("bye") });
    TURN_UNTIL(fixture.loop, call->cancelled);
    guest_call_data(machine->guest, call, 1, "abc", 3); /* crossed the CANCEL */
    finish(call);
    scene_close();
}
END_TEST

static void on_drop(void *ctx)
{
    struct held_read *read = ctx;

    held_read_leave(sandboxes_held_reads(adapter_sandboxes(fixture.adapter)), read);
}

START_TEST(test_the_oldest_makes_room)
{
    struct held_reads *held;
    struct held_read reads[3];

    scene_open("");
    held = sandboxes_held_reads(adapter_sandboxes(fixture.adapter));
    for (unsigned i = 0; i < 3; i++) {
        held_read_init(&reads[i], on_drop, &reads[i]);
        held_read_set(held, &reads[i], HELD_READS_MAX_BYTES / 2);
    }
    ck_assert(list_empty(&reads[0].node));
    ck_assert(!list_empty(&reads[1].node));
    held_read_set(held, &reads[1], 2 * (size_t)HELD_READS_MAX_BYTES);
    ck_assert(!list_empty(&reads[1].node)); /* never itself */
    held_read_leave(held, &reads[1]);
    held_read_leave(held, &reads[2]);
    ck_assert_uint_eq(held->bytes, 0);
    scene_close();
}
END_TEST

UNIT_MAIN("fs_read", test_short_text, test_empty_file_and_file_that_grew,
          test_no_body_for_what_is_not_text, test_body_ends_below_a_mebibyte,
          test_big_file_is_produced_lazily, test_reader_that_takes_odd_pieces,
          test_errors_before_the_reply, test_router_makes_no_channel,
          test_errors_after_the_reply, test_machine_lost_after_the_reply,
          test_held_text_ends_with_its_sandbox, test_reader_that_takes_nothing,
          test_reader_leaves, test_the_oldest_makes_room)
