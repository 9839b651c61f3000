/* test_agent_link.c - the host's end of the guest channel, against guests that mean no good. */
#include "agent_link_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "fake_clock.h"
#include "fake_guest.h"
#include "unit.h"

static struct loop *loop;
static struct fake_guest *guest;
static struct agent_link *link_;
static struct {
    unsigned greeted, ready, silent, awake, closed;
    char reason[256];
} seen;

static void on_greeted(void *ctx, const struct guest_hello *hello)
{
    seen.greeted++;
}

static void on_ready(void *ctx)
{
    seen.ready++;
}

static void on_silent(void *ctx)
{
    seen.silent++;
}

static void on_awake(void *ctx)
{
    seen.awake++;
}

static void on_closed(void *ctx, const char *reason)
{
    seen.closed++;
    (void)snprintf(seen.reason, sizeof(seen.reason), "%s", reason);
}

static const struct agent_link_events link_events = { .greeted = on_greeted,
                                                      .ready = on_ready,
                                                      .silent = on_silent,
                                                      .awake = on_awake,
                                                      .closed = on_closed };

static void open_link(void)
{
    int fd;

    ck_assert_int_eq(loop_new(&loop), 0);
    guest = fake_guest_new(loop, &fd);
    ck_assert_int_eq(agent_link_new(loop, fd, &link_events, NULL, &link_), 0);
}

static void open_ready(void)
{
    const struct guest_configure configure = { .seed = "", .hostname = "", .machine_id = "" };

    open_link();
    fake_guest_hello(guest, 1);
    TURN_UNTIL(loop, seen.greeted == 1);
    agent_link_configure(link_, &configure);
    TURN_UNTIL(loop, seen.ready == 1);
}

static void close_link(void)
{
    agent_link_free(link_);
    fake_guest_free(guest);
    loop_free(loop);
    fake_clock_reset();
}

static void expect_closed(const char *reason)
{
    TURN_UNTIL(loop, seen.closed == 1);
    ck_assert_msg(strstr(seen.reason, reason) != NULL, "closed for: %s", seen.reason);
    close_link();
}

/* A call and what became of it. */
struct call {
    struct agent_call *call;
    unsigned ended, heads, writables;
    bool lost, replied;
    enum sandbox_code code;
    char message[256];
    struct buf data[AGENT_STREAMS];
    unsigned ends[AGENT_STREAMS];
    bool keeps_credit;
    struct agent_link **free_in_data; /* frees the link from inside the callback */
    struct agent_link **free_at_end;
};

static void on_head(void *ctx, const void *head)
{
    ((struct call *)ctx)->heads++;
}

static void on_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct call *call = ctx;

    ck_assert_int_eq(buf_append(&call->data[stream], data, size), 0);
    if (call->free_in_data)
        agent_link_free(take_ptr(*call->free_in_data));
    else if (!call->keeps_credit)
        agent_call_grant(call->call, stream, size);
}

static void on_end(void *ctx, unsigned stream, const char *abort_reason)
{
    ((struct call *)ctx)->ends[stream]++;
}

static void on_writable(void *ctx, unsigned stream)
{
    ((struct call *)ctx)->writables++;
}

static void on_ended(void *ctx, const void *reply, struct sandbox_error *err, bool lost)
{
    struct call *call = ctx;

    ck_assert((reply == NULL) != (err == NULL));
    call->ended++;
    call->call = NULL;
    call->lost = lost;
    call->replied = reply != NULL;
    if (err)
        call->code = err->code;
    if (err)
        (void)snprintf(call->message, sizeof(call->message), "%.250s", err->message);
    if (call->free_at_end)
        agent_link_free(take_ptr(*call->free_at_end));
}

static const struct agent_call_events call_events = {
    .head = on_head, .data = on_data, .end = on_end, .writable = on_writable, .ended = on_ended
};

static void begin(struct call *call, enum guest_operation_id operation)
{
    char *words[] = { "a" };
    const struct guest_exec exec = { .argv = { 1, words }, .has_stdin = true };
    const struct fs_read_request read = { .sandbox_id = "", .path = "/" };
    const struct fs_write_request file = { .sandbox_id = "", .path = "/", .mode = "0" };
    struct sandbox_error err = { 0 };
    const void *request = operation == GUEST_exec      ? (const void *)&exec
                          : operation == GUEST_fs_read ? (const void *)&read
                                                       : (const void *)&file;

    ck_assert_int_eq(
        agent_call(link_, operation, request, &call_events, call, &call->call, &err), 0);
}

static void call_done(struct call *call)
{
    for (unsigned i = 0; i < AGENT_STREAMS; i++)
        buf_done(&call->data[i]);
}

/* Greeting. */

START_TEST(test_greeting)
{
    open_ready();
    ck_assert(guest->configured);
    close_link();
    ck_assert_uint_eq(seen.closed, 0);
}
END_TEST

START_TEST(test_no_call_ahead_of_ready)
{
    struct agent_call *call;
    struct sandbox_error err = { 0 };

    open_link();
    ck_assert_int_eq(agent_call(link_, GUEST_poweroff, &(struct guest_empty){ 0 }, &call_events,
                                NULL, &call, &err),
                     -1);
    ck_assert_int_eq(err.code, S300);
    close_link();
}
END_TEST

START_TEST(test_ready_ahead_of_configure)
{
    open_link();
    fake_guest_hello(guest, 1);
    fake_guest_ready(guest);
    expect_closed("READY that nobody waits for");
}
END_TEST

START_TEST(test_ping_ahead_of_hello)
{
    open_link();
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_PING });
    expect_closed("ahead of HELLO");
}
END_TEST

START_TEST(test_second_hello)
{
    open_ready();
    fake_guest_hello(guest, 1);
    expect_closed("a second HELLO");
}
END_TEST

/* Malformed bytes. */

static void expect_breach(const void *bytes, size_t size, const char *reason)
{
    open_ready();
    fake_guest_raw(guest, bytes, size);
    expect_closed(reason);
}

START_TEST(test_length_over_the_limit)
{
    expect_breach("\xff\xff\xff\xff", 4, "over the limit");
}
END_TEST

START_TEST(test_empty_frame)
{
    expect_breach("\0\0\0\0", 4, "no array");
}
END_TEST

START_TEST(test_garbage)
{
    expect_breach("\x08\0\0\0garbage!", 12, "no array");
}
END_TEST

START_TEST(test_array_that_lies)
{
    expect_breach("\x07\0\0\0\xdd\xff\xff\xff\xff\x0b\x00", 11, "broke the protocol");
}
END_TEST

START_TEST(test_unknown_kind)
{
    expect_breach("\x03\0\0\0\x92\x0d\x00", 7, "unknown kind");
}
END_TEST

START_TEST(test_more_elements_are_ignored)
{
    open_ready();
    fake_guest_raw(guest, "\x05\0\0\0\x94\x0b\x07\xc0\xc3", 9); /* PING 7 nil true */
    TURN_UNTIL(loop, guest->pongs == 1);
    close_link();
}
END_TEST

START_TEST(test_frames_torn_anywhere)
{
    static const char pings[] = "\x03\0\0\0\x92\x0b\x01\x03\0\0\0\x92\x0b\x02";

    open_ready();
    for (size_t i = 0; i < sizeof(pings) - 1; i++) {
        fake_guest_raw(guest, pings + i, 1);
        turn_for(loop, 1);
    }
    TURN_UNTIL(loop, guest->pongs == 2);
    close_link();
}
END_TEST

START_TEST(test_frames_of_the_host)
{
    static const enum agent_frame_kind kinds[] = { AGENT_FRAME_CONFIGURE, AGENT_FRAME_CANCEL };

    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        memset(&seen, 0, sizeof(seen));
        open_ready();
        if (kinds[i] == AGENT_FRAME_CANCEL)
            fake_guest_frame(guest, &(struct agent_frame){ .kind = kinds[i] });
        else
            fake_guest_map(guest, kinds[i], 0, &type_guest_empty, &(struct guest_empty){ 0 });
        expect_closed("only the host sends");
    }
}
END_TEST

/* Calls. */

START_TEST(test_exec)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_ready();
    begin(&call, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    ck_assert_uint_eq(agent_call_window(call.call, 0), AGENT_WINDOW_BYTES);
    ck_assert_uint_eq(agent_call_write(call.call, 0, (const uint8_t *)"in", 2), 2);
    agent_call_end(call.call, 0, NULL);
    guest_call_data(guest, there, 1, "out", 3);
    guest_call_data(guest, there, 2, "err", 3);
    TURN_UNTIL(loop, there->input_ended);
    ck_assert_str_eq(buf_text(&there->input), "in");
    guest_call_exit(guest, there, 0);
    TURN_UNTIL(loop, call.ended == 1);
    ck_assert(call.replied);
    ck_assert_str_eq(buf_text(&call.data[1]), "out");
    ck_assert_str_eq(buf_text(&call.data[2]), "err");
    ck_assert_uint_eq(call.ends[1] + call.ends[2], 2);
    call_done(&call);
    close_link();
}
END_TEST

START_TEST(test_unknown_id)
{
    open_ready();
    fake_guest_frame(guest,
                     &(struct agent_frame){ .kind = AGENT_FRAME_END, .id = 77, .stream = 1 });
    expect_closed("does not exist");
}
END_TEST

START_TEST(test_replies_twice)
{
    struct call call = { 0 };
    struct guest_call *there;
    uint64_t id;

    open_ready();
    begin(&call, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    id = there->id;
    guest_call_exit(guest, there, 0);
    fake_guest_map(guest, AGENT_FRAME_REPLY, id, &type_guest_exec_reply,
                   &(struct guest_exec_reply){ 0 });
    expect_closed("does not exist");
    ck_assert_uint_eq(call.ended, 1);
    ck_assert(call.replied);
}
END_TEST

START_TEST(test_malformed_reply)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_ready();
    begin(&call, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    fake_guest_map(guest, AGENT_FRAME_REPLY, there->id, &type_guest_empty,
                   &(struct guest_empty){ 0 });
    TURN_UNTIL(loop, seen.closed == 1);
    ck_assert_uint_eq(call.ended, 1);
    ck_assert(call.lost);
    ck_assert_ptr_nonnull(strstr(call.message, "malformed REPLY"));
    close_link();
}
END_TEST

static void expect_data_breach(enum guest_operation_id operation, unsigned stream, bool twice,
                               const char *reason)
{
    struct call call = { .keeps_credit = true };
    struct guest_call *there;

    memset(&seen, 0, sizeof(seen));
    open_ready();
    begin(&call, operation);
    there = fake_guest_call(guest, operation);
    if (twice)
        guest_call_end(guest, there, stream, NULL);
    guest_call_data(guest, there, stream, "x", 1);
    expect_closed(reason);
    ck_assert_uint_eq(call.ended, 1);
    ck_assert(call.lost);
    call_done(&call);
}

START_TEST(test_streams_that_are_not_there)
{
    expect_data_breach(GUEST_exec, 0, false, "does not have");
    expect_data_breach(GUEST_fs_write, 1, false, "does not have");
    expect_data_breach(GUEST_fs_read, 2, false, "does not have");
    expect_data_breach(GUEST_fs_read, 1, false, "ahead of its HEAD");
    expect_data_breach(GUEST_exec, 1, true, "has ended");
}
END_TEST

START_TEST(test_data_beyond_credit)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    struct call call = { .keeps_credit = true };
    struct guest_call *there;

    open_ready();
    begin(&call, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    for (unsigned i = 0; i < 4; i++)
        guest_call_data(guest, there, 1, bytes, sizeof(bytes));
    guest_call_data(guest, there, 2, "x", 1); /* a window of its own */
    TURN_UNTIL(loop, call.data[2].size == 1);
    ck_assert_uint_eq(seen.closed, 0);
    guest_call_data(guest, there, 1, "x", 1);
    expect_closed("than was granted");
    call_done(&call);
}
END_TEST

START_TEST(test_data_over_64_kib)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES + 1];
    struct call call = { 0 };

    open_ready();
    begin(&call, GUEST_exec);
    guest_call_data(guest, fake_guest_call(guest, GUEST_exec), 1, bytes, sizeof(bytes));
    expect_closed("not those of its kind");
    call_done(&call);
}
END_TEST

START_TEST(test_absurd_credit)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_ready();
    begin(&call, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_CREDIT,
                                                   .id = there->id,
                                                   .credit = UINT64_MAX });
    expect_closed("beyond all measure");
}
END_TEST

START_TEST(test_generous_credit_does_not_fill_memory)
{
    static uint8_t bytes[1 << 20];
    struct call call = { 0 };
    struct guest_call *there;
    size_t taken = 0;

    open_ready();
    begin(&call, GUEST_fs_write);
    there = fake_guest_call(guest, GUEST_fs_write);
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_CREDIT,
                                                   .id = there->id,
                                                   .credit = 1ull << 32 });
    TURN_UNTIL(loop, agent_call_window(call.call, 0) > AGENT_WINDOW_BYTES);
    for (unsigned i = 0; i < 64; i++)
        taken += agent_call_write(call.call, 0, bytes, sizeof(bytes));
    ck_assert_uint_le(taken, AGENT_LINK_STREAM_QUEUE_BYTES + AGENT_DATA_MAX_BYTES);
    TURN_UNTIL(loop, call.writables == 1); /* the guest has read */
    call_done(&call);
    close_link();
}
END_TEST

START_TEST(test_window_opens_again)
{
    static uint8_t bytes[AGENT_WINDOW_BYTES + 10];
    struct call call = { 0 };
    struct guest_call *there;

    open_ready();
    guest->gives_no_credit = true;
    begin(&call, GUEST_fs_write);
    there = fake_guest_call(guest, GUEST_fs_write);
    ck_assert_uint_eq(agent_call_write(call.call, 0, bytes, sizeof(bytes)), AGENT_WINDOW_BYTES);
    TURN_UNTIL(loop, there->input.size == AGENT_WINDOW_BYTES);
    ck_assert_uint_eq(call.writables, 0);
    fake_guest_frame(guest, &(struct agent_frame){
                                .kind = AGENT_FRAME_CREDIT, .id = there->id, .credit = 5 });
    TURN_UNTIL(loop, call.writables == 1);
    ck_assert_uint_eq(agent_call_write(call.call, 0, bytes, 10), 5);
    agent_call_end(call.call, 0, "never mind");
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_CREDIT,
                                                   .id = there->id,
                                                   .credit = 5 }); /* crossed our END */
    TURN_UNTIL(loop, there->input_ended);
    ck_assert_str_eq(there->input_abort, "never mind");
    guest_call_error(guest, there, "S218", "aborted", false);
    TURN_UNTIL(loop, call.ended == 1);
    ck_assert_int_eq(call.code, S218);
    ck_assert(!call.lost);
    ck_assert_uint_eq(call.writables, 1);
    close_link();
}
END_TEST

START_TEST(test_abandoned_call_can_come_to_its_end)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    struct call call = { .keeps_credit = true };
    struct guest_call *there;

    open_ready();
    begin(&call, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    for (unsigned i = 0; i < 4; i++)
        guest_call_data(guest, there, 1, bytes, sizeof(bytes));
    TURN_UNTIL(loop, call.data[1].size == AGENT_WINDOW_BYTES);
    agent_call_abandon(call.call);
    TURN_UNTIL(loop, there->cancelled && there->credit[1] == AGENT_WINDOW_BYTES);
    ck_assert(there->input_ended && there->input_abort);
    for (unsigned i = 0; i < 8; i++) {
        guest_call_data(guest, there, 1, bytes, sizeof(bytes));
        TURN_UNTIL(loop, there->credit[1] == AGENT_WINDOW_BYTES + (i + 1) * sizeof(bytes));
    }
    guest_call_exit(guest, there, 0);
    turn_for(loop, 10);
    ck_assert_uint_eq(call.ended, 0);
    ck_assert_uint_eq(call.data[1].size, AGENT_WINDOW_BYTES);
    ck_assert_uint_eq(seen.closed, 0);
    call_done(&call);
    close_link();
}
END_TEST

START_TEST(test_never_ending_output_starves_nobody)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    struct call call = { 0 }, other = { 0 };
    struct guest_call *there;
    uint64_t sent = 0;

    open_ready();
    begin(&call, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    for (unsigned i = 0; i < 200; i++) {
        TURN_UNTIL(loop, sent + sizeof(bytes) <= AGENT_WINDOW_BYTES + there->credit[1]);
        guest_call_data(guest, there, 1, bytes, sizeof(bytes));
        sent += sizeof(bytes);
        if (i == 100)
            begin(&other, GUEST_fs_write);
        if (i == 110)
            guest_call_reply(guest, fake_guest_call(guest, GUEST_fs_write),
                             &(struct guest_fs_write_reply){ 0 });
    }
    ck_assert_uint_eq(other.ended, 1);
    TURN_UNTIL(loop, call.data[1].size == sent);
    call_done(&call);
    close_link();
}
END_TEST

START_TEST(test_too_many_calls)
{
    struct call *calls = calloc(AGENT_LINK_CALLS_MAX, sizeof(*calls));
    struct agent_call *one_more;
    struct sandbox_error err = { 0 };

    open_ready();
    for (unsigned i = 0; i < AGENT_LINK_CALLS_MAX; i++) {
        begin(&calls[i], GUEST_fs_read);
        agent_call_abandon(calls[i].call); /* forgotten, not ended */
    }
    ck_assert_int_eq(agent_call(link_, GUEST_poweroff, &(struct guest_empty){ 0 }, &call_events,
                                NULL, &one_more, &err),
                     -1);
    ck_assert_ptr_nonnull(strstr(err.message, "4096"));
    free(calls);
    close_link();
}
END_TEST

/* It asks for ever and never takes an answer: what waits for it is bounded. */
START_TEST(test_guest_that_asks_but_does_not_read)
{
    static const uint8_t ping[] = { 11, 0, 0, 0, 0x92, 0x0b, 0xcf, 1, 2, 3, 4, 5, 6, 7, 8 };
    static uint8_t pings[15 * 8192];
    size_t sent = 0;

    for (size_t i = 0; i < sizeof(pings); i++)
        pings[i] = ping[i % sizeof(ping)];
    open_ready();
    loop_io_free(take_ptr(guest->io));
    while (sent < AGENT_LINK_STREAM_QUEUE_BYTES + (1u << 20)) {
        size_t at = sent % sizeof(pings);
        ssize_t size = send(guest->fd, pings + at, sizeof(pings) - at, MSG_DONTWAIT);

        sent += size > 0 ? (size_t)size : 0;
        ck_assert_int_eq(loop_turn(loop, 0), 0);
    }
    ck_assert_uint_le(agent_link_queued(link_), AGENT_LINK_STREAM_QUEUE_BYTES + sizeof(ping));
    ck_assert_uint_eq(seen.closed, 0);
    close_link();
}
END_TEST

/* Liveness. */

START_TEST(test_pings_when_quiet_only)
{
    open_ready();
    fake_clock_pass(loop, 4900);
    ck_assert_uint_eq(guest->pings, 0);
    fake_clock_pass(loop, 200);
    TURN_UNTIL(loop, guest->pings == 1);
    for (unsigned i = 0; i < 20; i++)
        fake_clock_pass(loop, 1000);
    ck_assert_uint_ge(guest->pings, 3);
    ck_assert_uint_le(guest->pings, 6);
    ck_assert_uint_eq(seen.silent, 0);
    close_link();
}
END_TEST

START_TEST(test_silent_and_awake)
{
    struct call call = { 0 };

    open_ready();
    guest->silent = true;
    begin(&call, GUEST_exec);
    (void)fake_guest_call(guest, GUEST_exec);
    for (unsigned i = 0; i < 14; i++)
        fake_clock_pass(loop, 1000);
    ck_assert_uint_eq(seen.silent, 0);
    fake_clock_pass(loop, 1500);
    ck_assert_uint_eq(seen.silent, 1);
    ck_assert_uint_eq(call.ended, 1);
    ck_assert(call.lost);
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_PONG });
    TURN_UNTIL(loop, seen.awake == 1);
    guest_call_exit(guest, fake_guest_call(guest, GUEST_exec), 0); /* too late, but in order */
    turn_for(loop, 5);
    ck_assert_uint_eq(seen.closed, 0);
    close_link();
}
END_TEST

START_TEST(test_a_host_that_slept_blames_nobody)
{
    open_ready();
    fake_clock_pass(loop, 3600 * 1000);
    ck_assert_uint_eq(seen.silent, 0);
    TURN_UNTIL(loop, guest->pings == 1);
    close_link();
}
END_TEST

START_TEST(test_given_up_call_keeps_it_silent)
{
    struct call call = { 0 };

    open_ready();
    begin(&call, GUEST_exec);
    (void)fake_guest_call(guest, GUEST_exec);
    agent_call_cancel(call.call);
    agent_call_give_up(take_ptr(call.call));
    ck_assert_uint_eq(seen.silent, 1);
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_PONG });
    turn_for(loop, 10);
    ck_assert_uint_eq(seen.awake, 0);
    guest_call_reply(guest, fake_guest_call(guest, GUEST_exec),
                     &(struct guest_exec_reply){ .cancelled = true });
    TURN_UNTIL(loop, seen.awake == 1);
    ck_assert_uint_eq(call.ended, 0);
    close_link();
}
END_TEST

/* Endings. */

START_TEST(test_end_of_file_fails_all_calls_once)
{
    struct call calls[3] = { 0 };

    open_ready();
    for (unsigned i = 0; i < 3; i++)
        begin(&calls[i], GUEST_exec);
    (void)fake_guest_call(guest, GUEST_exec);
    fake_guest_close(guest);
    TURN_UNTIL(loop, seen.closed == 1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert(calls[i].ended == 1 && calls[i].lost && calls[i].code == S300);
    close_link();
}
END_TEST

START_TEST(test_freed_from_inside_callbacks)
{
    struct call first = { 0 }, second = { 0 };
    struct guest_call *there;

    open_ready();
    first.free_in_data = &link_;
    begin(&first, GUEST_exec);
    begin(&second, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    guest_call_data(guest, there, 1, "x", 1);
    guest_call_data(guest, there, 1, "y", 1);
    TURN_UNTIL(loop, first.ended == 1);
    ck_assert_uint_eq(second.ended, 1);
    ck_assert_ptr_null(link_);
    ck_assert_uint_eq(seen.closed, 0);
    call_done(&first);
    fake_guest_free(guest);
    loop_free(loop);
}
END_TEST

START_TEST(test_freed_while_calls_fail)
{
    struct call calls[3] = { 0 };

    open_ready();
    for (unsigned i = 0; i < 3; i++)
        begin(&calls[i], GUEST_exec);
    calls[1].free_at_end = &link_;
    agent_link_fail_calls(link_, "enough");
    for (unsigned i = 0; i < 3; i++)
        ck_assert(calls[i].ended == 1 && calls[i].lost);
    ck_assert_ptr_null(link_);
    fake_guest_free(guest);
    loop_free(loop);
}
END_TEST

UNIT_MAIN("agent_link", test_greeting, test_no_call_ahead_of_ready,
          test_ready_ahead_of_configure, test_ping_ahead_of_hello, test_second_hello,
          test_length_over_the_limit, test_empty_frame, test_garbage, test_array_that_lies,
          test_unknown_kind, test_more_elements_are_ignored, test_frames_torn_anywhere,
          test_frames_of_the_host, test_exec, test_unknown_id, test_replies_twice,
          test_malformed_reply, test_streams_that_are_not_there, test_data_beyond_credit,
          test_data_over_64_kib, test_absurd_credit, test_generous_credit_does_not_fill_memory,
          test_window_opens_again, test_abandoned_call_can_come_to_its_end,
          test_never_ending_output_starves_nobody, test_too_many_calls,
          test_guest_that_asks_but_does_not_read, test_pings_when_quiet_only,
          test_silent_and_awake, test_a_host_that_slept_blames_nobody,
          test_given_up_call_keeps_it_silent, test_end_of_file_fails_all_calls_once,
          test_freed_from_inside_callbacks, test_freed_while_calls_fail)
