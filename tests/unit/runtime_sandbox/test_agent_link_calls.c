/* test_agent_link_calls.c - calls and their streams, with guests that mean no good. */
#include <string.h>
#include <sys/socket.h>

#include "link_scene.h"
#include "unit.h"

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

/* How far the host opens the window of an output that it takes, for an agent of MINOR. */
static uint64_t widest_window(uint32_t minor)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];
    struct call call = { 0 };
    struct guest_call *there;
    uint64_t sent = 0, widest = 0;

    open_ready_minor(minor);
    begin(&call, GUEST_exec);
    there = fake_guest_call(guest, GUEST_exec);
    for (unsigned i = 0; i < 100; i++) {
        TURN_UNTIL(loop, sent + sizeof(bytes) <= AGENT_WINDOW_BYTES + there->credit[1]);
        guest_call_data(guest, there, 1, bytes, sizeof(bytes));
        sent += sizeof(bytes);
        TURN_UNTIL(loop, call.data[1].size == sent);
        turn_for(loop, 1);
        if (AGENT_WINDOW_BYTES + there->credit[1] - sent > widest)
            widest = AGENT_WINDOW_BYTES + there->credit[1] - sent;
    }
    call_done(&call);
    close_link();
    return widest;
}

START_TEST(test_window_of_an_older_agent)
{
    ck_assert_uint_eq(widest_window(AGENT_WIDE_MINOR - 1), AGENT_WINDOW_BYTES);
}
END_TEST

START_TEST(test_window_of_an_agent_that_takes_wide_ones)
{
    ck_assert_uint_eq(widest_window(AGENT_WIDE_MINOR), AGENT_WIDE_WINDOW_BYTES);
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

UNIT_MAIN("agent_link_calls", test_exec, test_unknown_id, test_replies_twice,
          test_malformed_reply, test_streams_that_are_not_there, test_data_beyond_credit,
          test_data_over_64_kib, test_absurd_credit, test_generous_credit_does_not_fill_memory,
          test_window_opens_again, test_abandoned_call_can_come_to_its_end,
          test_window_of_an_older_agent, test_window_of_an_agent_that_takes_wide_ones,
          test_never_ending_output_starves_nobody, test_too_many_calls,
          test_guest_that_asks_but_does_not_read)
