/* test_agent_link_greeting.c - from the first byte to READY, and what breaches the protocol:
 * guests that mean no good. */
#include <string.h>

#include "link_scene.h"
#include "unit.h"

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
    expect_breach("\x03\0\0\0\x92\x0f\x00", 7, "unknown kind");
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

UNIT_MAIN("agent_link_greeting", test_greeting, test_no_call_ahead_of_ready,
          test_ready_ahead_of_configure, test_ping_ahead_of_hello, test_second_hello,
          test_length_over_the_limit, test_empty_frame, test_garbage, test_array_that_lies,
          test_unknown_kind, test_more_elements_are_ignored, test_frames_torn_anywhere,
          test_frames_of_the_host)
