/* test_agent_link_mailbox.c - bulk through the memory of a guest's disk: both ways, with peers
 * that have no such disk, and with guests that mean no good. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec.h"
#include "fake_clock.h"
#include "link_scene.h"
#include "unit.h"

#define SLOT AGENT_MAILBOX_SLOT_BYTES
#define ALL_SLOTS ((1u << AGENT_MAILBOX_SLOTS) - 1)

static uint8_t bulk[8 * SLOT];

static void open_both(void)
{
    for (size_t i = 0; i < sizeof(bulk); i++)
        bulk[i] = (uint8_t)(i * 31 + (i >> 12));
    open_ready_mailbox(AGENT_MAILBOX_SLOTS, SLOT, true);
    ck_assert(guest->configure.mailbox);
}

static void turn(void)
{
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(loop_turn(loop, 0), 0);
}

static struct guest_call *begin_there(struct call *call, enum guest_operation_id operation)
{
    begin(call, operation);
    return fake_guest_call(guest, operation);
}

/* Blocks of 512 bytes that the memory takes. */
static unsigned memory_blocks(void)
{
    struct stat status;

    ck_assert_int_eq(fstat(guest->mailbox_fd, &status), 0);
    return (unsigned)status.st_blocks;
}

/* Who does without. */

static void expect_data_alone(void)
{
    struct call call = { 0 };
    struct guest_call *there = begin_there(&call, GUEST_fs_write);

    ck_assert(!guest->configure.has_mailbox);
    ck_assert_uint_eq(agent_call_write(call.call, 0, bulk, SLOT), SLOT);
    TURN_UNTIL(loop, there->input.size == SLOT);
    ck_assert_uint_eq(guest->slots, 0);
    agent_call_abandon(call.call);
    close_link();
}

START_TEST(test_agent_without_one)
{
    open_ready_minor(3);
    expect_data_alone();
}
END_TEST

START_TEST(test_host_without_one)
{
    open_ready_mailbox(AGENT_MAILBOX_SLOTS, SLOT, false);
    expect_data_alone();
}
END_TEST

START_TEST(test_shapes_that_differ)
{
    open_ready_mailbox(AGENT_MAILBOX_SLOTS * 2, SLOT, true);
    expect_data_alone();
    memset(&seen, 0, sizeof(seen));
    open_ready_mailbox(AGENT_MAILBOX_SLOTS, SLOT / 2, true);
    expect_data_alone();
}
END_TEST

/* Memory of another size is none. */
START_TEST(test_memory_that_does_not_fit)
{
    struct mailbox mailbox;
    FILE *file = tmpfile();

    mailbox_init(&mailbox, dup(fileno(file)));
    ck_assert_int_eq(mailbox.fd, -1);
    (void)fclose(file);
}
END_TEST

START_TEST(test_memory_keeps_its_size)
{
    int fd = mailbox_memory_new();

    ck_assert_int_ne(ftruncate(fd, 0), 0);
    ck_assert_int_ne(ftruncate(fd, 2 * (off_t)AGENT_MAILBOX_BYTES), 0);
    (void)close(fd);
}
END_TEST

/* To the guest. */

START_TEST(test_order_of_small_and_large)
{
    struct call call = { 0 };
    struct guest_call *there;
    static const size_t sizes[] = { 10, 40000, 3, SLOT / 2 + 1, 70000 };
    size_t at = 0;

    open_both();
    there = begin_there(&call, GUEST_exec);
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        ck_assert_uint_eq(agent_call_write(call.call, 0, bulk + at, sizes[i]),
                          at + sizes[i] <= SLOT ? sizes[i] : SLOT - at);
        at += sizes[i] < SLOT - at ? sizes[i] : SLOT - at;
        if (i == 2)
            turn();
    }
    agent_call_end(call.call, 0, NULL);
    TURN_UNTIL(loop, there->input_ended);
    ck_assert_uint_eq(there->input.size, at);
    ck_assert_mem_eq(there->input.data, bulk, at);
    ck_assert_uint_eq(guest->slots, 2);
    agent_call_abandon(call.call);
    close_link();
}
END_TEST

/* What is written in one turn shares a slot, and nothing waits for the next turn. */
START_TEST(test_writes_of_one_turn_share_a_slot)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_both();
    there = begin_there(&call, GUEST_fs_write);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(agent_call_write(call.call, 0, bulk + i * 65536, 65536), 65536);
    TURN_UNTIL(loop, there->input.size == 3 * 65536);
    ck_assert_uint_eq(guest->slots, 1);
    ck_assert_mem_eq(there->input.data, bulk, 3 * 65536);
    agent_call_abandon(call.call);
    close_link();
}
END_TEST

START_TEST(test_no_slot_is_left)
{
    struct call call = { 0 };
    struct guest_call *there;
    size_t sent = 0;

    open_both();
    guest->keeps_slots = true;
    there = begin_there(&call, GUEST_fs_write);
    while (sent < 24 * (size_t)SLOT) {
        sent += agent_call_write(call.call, 0, bulk + sent % sizeof(bulk), SLOT - sent % SLOT);
        ck_assert_int_eq(loop_turn(loop, 0), 0);
    }
    TURN_UNTIL(loop, there->input.size == sent);
    ck_assert_uint_eq(guest->slots, AGENT_MAILBOX_SLOTS);
    for (size_t at = 0; at < sent; at += SLOT)
        ck_assert_mem_eq(there->input.data + at, bulk + at % sizeof(bulk), SLOT);
    fake_guest_frame(guest,
                     &(struct agent_frame){ .kind = AGENT_FRAME_RETURN, .slots = ALL_SLOTS });
    turn();
    ck_assert_uint_eq(agent_call_write(call.call, 0, bulk, SLOT), SLOT);
    turn();
    ck_assert_uint_eq(guest->slots, AGENT_MAILBOX_SLOTS + 1);
    agent_call_abandon(call.call);
    close_link();
}
END_TEST

static void put_error(struct buf *to, uint64_t id)
{
    const struct guest_error error = { .code = "S300", .message = "ended" };
    size_t start;

    ck_assert_int_eq(agent_frame_begin(AGENT_FRAME_ERROR, id, NULL, to, &start), 0);
    ck_assert_int_eq(codec_encode_msgpack(&type_guest_error, &error, to), 0);
    ck_assert_int_eq(agent_frame_finish(to, start), 0);
}

static void write_in_data(void *ctx, unsigned stream, const uint8_t *data, size_t size)
{
    struct call *call = ctx;

    ck_assert_uint_eq(agent_call_write(call->call, 0, bulk, 65536), 65536);
    ck_assert_ptr_eq(link_->filling.call, call->call);
}

/* The guest never hears of its slot: it is free again. */
START_TEST(test_call_ends_before_its_slot_is_told)
{
    char *words[] = { "a" };
    const struct guest_exec exec = { .argv = { 1, words }, .has_stdin = true };
    const struct agent_call_events events = { .data = write_in_data,
                                              .ended = call_events.ended };
    struct sandbox_error err = { 0 };
    struct guest_call *there;
    struct call call = { 0 };
    struct buf frames = { 0 };

    open_both();
    ck_assert_int_eq(agent_call(link_, GUEST_exec, &exec, &events, &call, &call.call, &err), 0);
    there = fake_guest_call(guest, GUEST_exec);
    loop_io_free(take_ptr(guest->io)); /* both in one read */
    ck_assert_int_eq(agent_frame_encode(&(struct agent_frame){ .kind = AGENT_FRAME_DATA,
                                                               .id = there->id,
                                                               .stream = 1,
                                                               .body = { "x", 1 } },
                                        &frames),
                     0);
    put_error(&frames, there->id);
    ck_assert_int_eq(send(guest->fd, frames.data, frames.size, 0), frames.size);
    turn();
    ck_assert_uint_eq(call.ended, 1);
    ck_assert_ptr_null(link_->filling.call);
    ck_assert_uint_eq(link_->mailbox.free, ALL_SLOTS);
    buf_done(&frames);
    close_link();
}
END_TEST

/* From the guest. */

START_TEST(test_slots_of_the_guest)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_both();
    there = begin_there(&call, GUEST_exec);
    guest_call_data(guest, there, 1, "a", 1);
    guest_call_slot(guest, there, 1, 3, bulk, 100000);
    guest_call_slot(guest, there, 2, 0, bulk, 1);
    guest_call_slot(guest, there, 1, 15, bulk + 100000, 100000);
    guest_call_data(guest, there, 1, "z", 1);
    guest_call_exit(guest, there, 0);
    TURN_UNTIL(loop, call.ended == 1);
    ck_assert(call.replied);
    ck_assert_uint_eq(call.data[1].size, 200002);
    ck_assert_mem_eq(call.data[1].data + 1, bulk, 200000);
    ck_assert_uint_eq(call.data[2].size, 1);
    call_done(&call);
    close_link();
}
END_TEST

/* Each slot comes back, in few frames, however its bytes are taken. */
START_TEST(test_slots_come_back)
{
    struct call call = { .keeps_credit = true };
    struct guest_call *there;

    open_both();
    there = begin_there(&call, GUEST_exec);
    for (unsigned slot = 0; slot < AGENT_MAILBOX_RETURN_SLOTS; slot++) {
        turn();
        ck_assert_uint_eq(guest->returned, 0);
        guest_call_slot(guest, there, 1, slot, bulk, 1);
    }
    TURN_UNTIL(loop, guest->returned == (1u << AGENT_MAILBOX_RETURN_SLOTS) - 1);
    guest->returned = 0;
    guest_call_slot(guest, there, 1, 9, bulk, 1);
    turn();
    ck_assert_uint_eq(guest->returned, 0);
    agent_call_grant(call.call, 1, AGENT_WINDOW_BYTES);
    TURN_UNTIL(loop, there->credit[1] > 0);
    ck_assert_uint_eq(guest->returned, 1u << 9);
    agent_call_abandon(call.call);
    call_done(&call);
    close_link();
}
END_TEST

START_TEST(test_slots_of_an_abandoned_call)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_both();
    there = begin_there(&call, GUEST_exec);
    agent_call_abandon(call.call);
    for (unsigned slot = 0; slot < AGENT_MAILBOX_SLOTS; slot++)
        guest_call_slot(guest, there, 1, slot, bulk, 10);
    TURN_UNTIL(loop, guest->returned == ALL_SLOTS);
    ck_assert_uint_eq(seen.closed, 0);
    close_link();
}
END_TEST

/* After a while without use the memory is given back, and the guest is told to do the same. */
START_TEST(test_memory_is_given_back)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_both();
    guest->keeps_slots = true;
    there = begin_there(&call, GUEST_exec);
    guest_call_slot(guest, there, 1, 5, bulk, 1000);
    ck_assert_uint_eq(agent_call_write(call.call, 0, bulk, SLOT), SLOT);
    TURN_UNTIL(loop, there->input.size == SLOT);
    ck_assert_uint_ge(memory_blocks(), SLOT / 512);
    fake_clock_pass(loop, 1000);
    ck_assert_uint_eq(guest->idles, 0);
    fake_clock_pass(loop, 1000);
    TURN_UNTIL(loop, guest->idles == 1);
    ck_assert_uint_eq(guest->returned, 1u << 5);
    /* That slot is still out: its bytes may not have been read. */
    ck_assert_uint_ge(memory_blocks(), SLOT / 512);
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_RETURN, .slots = 1 });
    TURN_UNTIL(loop, memory_blocks() < SLOT / 512);
    fake_clock_pass(loop, 2000);
    turn();
    ck_assert_uint_eq(guest->idles, 1);
    agent_call_abandon(call.call);
    call_done(&call);
    close_link();
}
END_TEST

/* Breaches. */

static void expect_breach(const struct agent_frame *frame, unsigned times, const char *reason)
{
    struct call call = { .keeps_credit = true };
    struct agent_frame sent = *frame;

    memset(&seen, 0, sizeof(seen));
    open_both();
    sent.id = begin_there(&call, GUEST_exec)->id;
    for (unsigned i = 0; i < times; i++)
        fake_guest_frame(guest, &sent);
    expect_closed(reason);
    ck_assert_uint_eq(call.ended, 1);
    ck_assert(call.lost);
    call_done(&call);
}

START_TEST(test_breaches)
{
    struct agent_frame slot = { .kind = AGENT_FRAME_SLOT, .stream = 1, .slot = 2, .size = 9 };
    const struct agent_frame back = { .kind = AGENT_FRAME_RETURN, .slots = 1 };

    expect_breach(&slot, 2, "not the guest's to fill");
    slot.stream = 0;
    expect_breach(&slot, 1, "does not have");
    expect_breach(&back, 1, "was not out");
}
END_TEST

START_TEST(test_slots_beyond_credit)
{
    struct call call = { .keeps_credit = true };
    struct guest_call *there;

    open_both();
    there = begin_there(&call, GUEST_exec);
    guest_call_slot(guest, there, 1, 0, bulk, SLOT);
    guest_call_slot(guest, there, 1, 1, bulk, 1);
    expect_closed("was granted");
    call_done(&call);
}
END_TEST

START_TEST(test_slot_where_none_is_in_use)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_ready_minor(4);
    there = begin_there(&call, GUEST_exec);
    fake_guest_frame(guest,
                     &(struct agent_frame){
                         .kind = AGENT_FRAME_SLOT, .id = there->id, .stream = 1, .size = 9 });
    expect_closed("not in use");
    memset(&seen, 0, sizeof(seen));
    open_ready_minor(4);
    fake_guest_frame(guest, &(struct agent_frame){ .kind = AGENT_FRAME_RETURN });
    expect_closed("not in use");
}
END_TEST

/* It changes what it has sent while it is being taken: only its own bytes suffer. */
START_TEST(test_guest_that_scribbles)
{
    struct call call = { 0 };
    struct guest_call *there;

    open_both();
    there = begin_there(&call, GUEST_exec);
    for (unsigned i = 0; i < 200; i++) {
        guest_call_slot(guest, there, 1, i % AGENT_MAILBOX_SLOTS, bulk, 5000);
        ck_assert_int_eq(pwrite(guest->mailbox_fd, bulk + i, 300000, (off_t)i * 20000), 300000);
        TURN_UNTIL(loop, call.data[1].size == (i + 1) * 5000);
        ck_assert_uint_eq(seen.closed, 0);
        guest->returned = 0;
    }
    agent_call_abandon(call.call);
    call_done(&call);
    close_link();
}
END_TEST

UNIT_MAIN("agent_link_mailbox", test_agent_without_one, test_host_without_one,
          test_shapes_that_differ, test_memory_that_does_not_fit, test_memory_keeps_its_size,
          test_order_of_small_and_large, test_writes_of_one_turn_share_a_slot,
          test_no_slot_is_left, test_call_ends_before_its_slot_is_told, test_slots_of_the_guest,
          test_slots_come_back, test_slots_of_an_abandoned_call, test_memory_is_given_back,
          test_breaches, test_slots_beyond_credit, test_slot_where_none_is_in_use,
          test_guest_that_scribbles)
