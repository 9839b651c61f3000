/* test_agent_frame.c - frames whose bytes are put in place. What comes from outside is
 * tests/fuzz/guest-agent's. */
#include "agent_frame.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static void check_data(const uint8_t *at, uint64_t id, unsigned stream, const char *bytes,
                       size_t size)
{
    struct agent_frame frame;
    const char *reason;

    ck_assert_int_eq(agent_frame_decode(at + AGENT_FRAME_PREFIX_BYTES, agent_frame_size(at),
                                        &frame, &reason),
                     0);
    ck_assert_int_eq(frame.kind, AGENT_FRAME_DATA);
    ck_assert_uint_eq(frame.id, id);
    ck_assert_uint_eq(frame.stream, stream);
    ck_assert_uint_eq(frame.body.size, size);
    ck_assert_int_eq(memcmp(frame.body.data, bytes, size), 0);
}

START_TEST(test_data_in_place)
{
    static char bytes[AGENT_DATA_MAX_BYTES];
    const size_t sizes[] = { 1, 255, 256, 65535, AGENT_DATA_MAX_BYTES };
    struct buf buf = { 0 };
    size_t start;

    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        ck_assert_int_eq(agent_frame_data_begin(UINT64_MAX, 2, sizeof(bytes), &buf, &start), 0);
        ck_assert_uint_ge(buf.capacity - buf.size, sizeof(bytes));
        memcpy(buf.data + buf.size, bytes, sizes[i]);
        agent_frame_data_finish(&buf, start, sizes[i]);
        ck_assert_uint_eq(buf.size - start,
                          agent_frame_size(buf.data + start) + AGENT_FRAME_PREFIX_BYTES);
        check_data(buf.data + start, UINT64_MAX, 2, bytes, sizes[i]);
    }
    buf_done(&buf);
}
END_TEST

START_TEST(test_no_data_is_no_frame)
{
    struct buf buf = { 0 };
    size_t start;

    ck_assert_int_eq(buf_append_text(&buf, "before"), 0);
    ck_assert_int_eq(agent_frame_data_begin(1, 1, 100, &buf, &start), 0);
    agent_frame_data_finish(&buf, start, 0);
    ck_assert_str_eq(buf_text(&buf), "before");
    buf.limit = 50;
    ck_assert_int_eq(agent_frame_data_begin(1, 1, 100, &buf, &start), -ENOBUFS);
    ck_assert_str_eq(buf_text(&buf), "before");
    buf_done(&buf);
}
END_TEST

static int decode(const struct agent_frame *from, struct agent_frame *ret_frame)
{
    struct buf buf = { 0 };
    const char *reason = NULL;
    int result;

    ck_assert_int_eq(agent_frame_encode(from, &buf), 0);
    result = agent_frame_decode(buf.data + AGENT_FRAME_PREFIX_BYTES, agent_frame_size(buf.data),
                                ret_frame, &reason);
    ck_assert_int_eq(result < 0, reason != NULL);
    buf_done(&buf);
    return result;
}

START_TEST(test_slots)
{
    struct agent_frame got, slot = { .kind = AGENT_FRAME_SLOT,
                                     .id = 7,
                                     .stream = 2,
                                     .slot = AGENT_MAILBOX_SLOTS - 1,
                                     .size = AGENT_MAILBOX_SLOT_BYTES };

    ck_assert_int_eq(decode(&slot, &got), 0);
    ck_assert_uint_eq(got.id, 7);
    ck_assert_uint_eq(got.stream, 2);
    ck_assert_uint_eq(got.slot, slot.slot);
    ck_assert_uint_eq(got.size, slot.size);
    slot.slot++;
    ck_assert_int_eq(decode(&slot, &got), -EPROTO);
    slot.slot = 0;
    slot.size++;
    ck_assert_int_eq(decode(&slot, &got), -EPROTO);
    slot.size = 0;
    ck_assert_int_eq(decode(&slot, &got), -EPROTO);
    slot.size = 1;
    slot.stream = AGENT_STREAMS;
    ck_assert_int_eq(decode(&slot, &got), -EPROTO);
}
END_TEST

START_TEST(test_return)
{
    struct agent_frame got, back = { .kind = AGENT_FRAME_RETURN,
                                     .slots = (1u << AGENT_MAILBOX_SLOTS) - 1,
                                     .idle = true };

    ck_assert_int_eq(decode(&back, &got), 0);
    ck_assert_uint_eq(got.slots, back.slots);
    ck_assert(got.idle);
    back.slots = 1u << AGENT_MAILBOX_SLOTS;
    ck_assert_int_eq(decode(&back, &got), -EPROTO);
}
END_TEST

UNIT_MAIN("agent_frame", test_data_in_place, test_no_data_is_no_frame, test_slots, test_return)
