/* test_agent_link_life.c - silence and endings of the link to a guest. */
#include "fake_clock.h"
#include "link_scene.h"
#include "unit.h"

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

START_TEST(test_settles_when_it_is_told_to)
{
    open_ready();
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_PONG, .id = 1 });
    turn_for(loop, 5);
    ck_assert_uint_eq(seen.settled, 0); /* nobody has asked */
    agent_link_settle(link_);
    TURN_UNTIL(loop, seen.settled == 1);
    ck_assert_uint_eq(guest->pings, 1);
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_PONG, .id = 1 });
    turn_for(loop, 5);
    ck_assert_uint_eq(seen.settled, 1);
    ck_assert_uint_eq(seen.closed, 0);
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

UNIT_MAIN("agent_link_life", test_settles_when_it_is_told_to, test_pings_when_quiet_only,
          test_silent_and_awake, test_a_host_that_slept_blames_nobody,
          test_given_up_call_keeps_it_silent, test_end_of_file_fails_all_calls_once,
          test_freed_from_inside_callbacks, test_freed_while_calls_fail)
