/* test_exec.c - exec: checks in their order, output, time, slots, loss (contract 5.2). */
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "unit.h"

static uint64_t exec(const char *id, const char *members)
{
    return scene_call("exec", "{\"sandbox_id\":\"%s\"%s}", id, members);
}

static const struct guest_exec *exec_request(struct guest_call *call)
{
    return call->request;
}

START_TEST(test_reply)
{
    struct machine *machine;
    struct guest_call *call;
    char id[37];
    uint64_t exec_call;

    scene_open("");
    machine = scene_create("", id);
    exec_call = exec(id, ",\"cmd\":\"echo 'a b'\",\"env\":{\"B\":\"2\",\"A\":\"1\"},"
                         "\"workdir\":\"/w\",\"timeout_ms\":5000");
    call = fake_guest_call(machine->guest, GUEST_exec);
    ck_assert_uint_eq(exec_request(call)->argv.count, 2);
    ck_assert_str_eq(exec_request(call)->argv.items[1], "a b");
    ck_assert_uint_eq(exec_request(call)->env.count, 2);
    ck_assert_str_eq(exec_request(call)->workdir, "/w");
    ck_assert_uint_eq(exec_request(call)->timeout_ms, 5000);
    ck_assert(!exec_request(call)->has_stdin);
    guest_call_data(machine->guest, call, 1, "out\xff", 4);
    guest_call_data(machine->guest, call, 2, "err\xe2\x82", 5);
    guest_call_exit(machine->guest, call, 3);
    {
        _cleanup_free_ char *answer = scene_answer(exec_call);
        char *duration = strstr(answer, "\"duration_ms\":");

        ck_assert_ptr_nonnull(duration);
        ck_assert_ptr_nonnull(strstr(answer,
                                     "{\"stdout\":\"out\ufffd\",\"stderr\":\"err\ufffd\","
                                     "\"exit_code\":3,\"timed_out\":false,"));
        ck_assert_ptr_nonnull(strstr(answer, "\"success\":false,\"stdout_truncated\":false,"
                                             "\"stderr_truncated\":false}"));
    }
    scene_close();
}
END_TEST

START_TEST(test_order_of_checks)
{
    char id[37];

    scene_open("    max_concurrent_exec_per_sandbox: 1\n");
    scene_create("", id);
    scene_expect(scene_call("exec", "{\"cmd\":5}"), "S001", "sandbox_id");
    scene_expect(exec("nonsense", ",\"cmd\":\"a 'b\",\"workdir\":\"x\""), "S001", "nonsense");
    scene_expect(exec("01234567-89ab-4def-8123-456789abcdef", ",\"cmd\":\"a 'b\""), "S001",
                 "unbalanced");
    scene_expect(exec("01234567-89ab-4def-8123-456789abcdef",
                      ",\"cmd\":\"a\",\"workdir\":\"x\",\"env\":{\"1\":\"\"}"),
                 "S001", "workdir");
    scene_expect(
        exec("01234567-89ab-4def-8123-456789abcdef", ",\"cmd\":\"a\",\"env\":{\"1\":\"\"}"),
        "S001", "env");
    scene_expect(
        exec("{01234567-89AB-4DEF-8123-456789ABCDEF}", ",\"cmd\":\"a\",\"stdin\":\"?\""),
        "S002", "01234567-89ab-4def-8123-456789abcdef");
    (void)exec(id, ",\"cmd\":\"a\"");
    scene_expect(exec(id, ",\"cmd\":\"a\",\"stdin\":\"?\""), "S003",
                 "max_concurrent_exec_per_sandbox");
    scene_close();
}
END_TEST

START_TEST(test_bad_stdin_gives_the_slot_back)
{
    struct machine *machine;
    char id[37];
    uint64_t call;

    scene_open("    max_concurrent_exec_per_sandbox: 0\n"); /* acts as 1 */
    machine = scene_create("", id);
    scene_expect(exec(id, ",\"cmd\":\"a\",\"stdin\":\"Zg=\""), "S001", "stdin");
    call = exec(id, ",\"cmd\":\"a\"");
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
    scene_expect(call, NULL, "\"success\":true");
    scene_close();
}
END_TEST

START_TEST(test_slots_are_given_back)
{
    struct machine *machine;
    struct guest_call *first;
    char id[37];
    uint64_t calls[3];

    scene_open("    max_concurrent_exec_per_sandbox: 2\n");
    machine = scene_create("", id);
    calls[0] = exec(id, ",\"cmd\":\"a\"");
    first = fake_guest_call(machine->guest, GUEST_exec);
    calls[1] = exec(id, ",\"cmd\":\"b\"");
    calls[2] = exec(id, ",\"cmd\":\"c\"");
    scene_expect(calls[2], "S003", id);
    ck_assert(scene_unanswered(calls[0]) && scene_unanswered(calls[1]));
    guest_call_error(machine->guest, first, "S300", "no fork", false);
    scene_expect(calls[0], "S300", "\"outcome\":\"never_ran\"");
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
    scene_expect(calls[1], NULL, "\"exit_code\":0");
    {
        _cleanup_free_ char *list = scene_list();

        ck_assert_ptr_nonnull(strstr(list, "\"exec_in_flight\":0,\"exec_slots_free\":2"));
    }
    scene_close();
}
END_TEST

START_TEST(test_stdin_follows_the_window)
{
    struct machine *machine;
    struct guest_call *call;
    struct buf body = { 0 };
    char id[37];
    uint64_t exec_call;

    scene_open("");
    machine = scene_create("", id);
    machine->guest->gives_no_credit = true;
    for (unsigned i = 0; i < 100000; i++)
        ck_assert_int_eq(buf_append_text(&body, "QUJDREVG"), 0); /* ABCDEF */
    exec_call = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"cat\",\"stdin\":\"%.*s\"}",
                           id, (int)body.size, (char *)body.data);
    buf_done(&body);
    call = fake_guest_call(machine->guest, GUEST_exec);
    ck_assert(exec_request(call)->has_stdin);
    TURN_UNTIL(fixture.loop, call->input.size == AGENT_WINDOW_BYTES);
    turn_for(fixture.loop, 20);
    ck_assert_uint_eq(call->input.size, AGENT_WINDOW_BYTES);
    fake_guest_frame(
        machine->guest,
        &(struct agent_frame){ .kind = AGENT_FRAME_CREDIT, .id = call->id, .credit = 1 << 20 });
    TURN_UNTIL(fixture.loop, call->input_ended);
    ck_assert_uint_eq(call->input.size, 600000);
    ck_assert_int_eq(memcmp(call->input.data + 599994, "ABCDEF", 6), 0);
    guest_call_exit(machine->guest, call, 0);
    scene_expect(exec_call, NULL, "\"success\":true");
    scene_close();
}
END_TEST

START_TEST(test_truncation_and_credit)
{
    static uint8_t bytes[65536];
    struct machine *machine;
    struct guest_call *call;
    char id[37];
    uint64_t exec_call;

    scene_open("    max_output_bytes: 3\n");
    machine = scene_create("", id);
    memset(bytes, 'x', sizeof(bytes));
    exec_call = exec(id, ",\"cmd\":\"yes\"");
    call = fake_guest_call(machine->guest, GUEST_exec);
    for (unsigned i = 0; i < 32; i++) {
        guest_call_data(machine->guest, call, 1, bytes, sizeof(bytes));
        TURN_UNTIL(fixture.loop, call->credit[1] == (i + 1) * sizeof(bytes));
    }
    guest_call_data(machine->guest, call, 2, "abc", 3);
    guest_call_exit(machine->guest, call, 0);
    scene_expect(exec_call, NULL, "{\"stdout\":\"xxx\",\"stderr\":\"abc\",");
    exec_call = exec(id, ",\"cmd\":\"yes\"");
    call = fake_guest_call(machine->guest, GUEST_exec);
    guest_call_data(machine->guest, call, 1, "wxyz", 4);
    guest_call_exit(machine->guest, call, 0);
    scene_expect(exec_call, NULL, "\"stdout_truncated\":true,\"stderr_truncated\":false");
    scene_close();
}
END_TEST

START_TEST(test_timeout_kills_and_answers_with_partial)
{
    struct machine *machine;
    struct guest_call *call;
    char id[37];
    uint64_t exec_call;

    scene_open("    max_exec_timeout_ms: 2000\n    max_output_bytes: 1\n");
    machine = scene_create("", id);
    exec_call = exec(id, ",\"cmd\":\"sleep 9\",\"timeout_ms\":900000");
    call = fake_guest_call(machine->guest, GUEST_exec);
    ck_assert_uint_eq(exec_request(call)->timeout_ms, 2000);
    guest_call_data(machine->guest, call, 1, "partly", 6);
    scene_pass(1900);
    ck_assert(!call->cancelled);
    scene_pass(200);
    TURN_UNTIL(fixture.loop, call->cancelled);
    ck_assert(scene_unanswered(exec_call));
    guest_call_reply(machine->guest, call,
                     &(struct guest_exec_reply){ .exit_code = 137, .cancelled = true });
    {
        _cleanup_free_ char *answer = scene_answer(exec_call);

        ck_assert_ptr_nonnull(strstr(answer, "\"code\":\"S200\""));
        ck_assert_ptr_nonnull(strstr(answer, "2000 ms"));
        ck_assert_ptr_nonnull(strstr(answer,
                                     "\"partial\":{\"stdout\":\"partly\",\"stderr\":\"\","
                                     "\"stdout_truncated\":false,\"stderr_truncated\":false}"));
        ck_assert_ptr_null(strstr(answer, "outcome"));
    }
    scene_close();
}
END_TEST

START_TEST(test_the_guest_noticed_the_timeout_first)
{
    struct machine *machine;
    char id[37];
    uint64_t exec_call;

    scene_open("");
    machine = scene_create("", id);
    exec_call = exec(id, ",\"cmd\":\"sleep 9\",\"timeout_ms\":1000");
    guest_call_reply(machine->guest, fake_guest_call(machine->guest, GUEST_exec),
                     &(struct guest_exec_reply){ .exit_code = 137, .timed_out = true });
    scene_expect(exec_call, "S200", "1000 ms");
    scene_close();
}
END_TEST

START_TEST(test_unconfirmed_kill_makes_it_unreachable)
{
    struct machine *machine;
    struct guest_call *call;
    char id[37];
    uint64_t exec_call, other;

    scene_open("    max_concurrent_exec_per_sandbox: 2\n");
    machine = scene_create("", id);
    exec_call = exec(id, ",\"cmd\":\"a\",\"timeout_ms\":1000");
    call = fake_guest_call(machine->guest, GUEST_exec);
    other = scene_call("fs::ls", "{\"sandbox_id\":\"%s\",\"path\":\"/x\"}", id);
    (void)fake_guest_call(machine->guest, GUEST_fs_ls);
    scene_pass(2500);
    ck_assert(scene_unanswered(exec_call));
    scene_pass(1000);
    scene_expect(exec_call, "S200", "1000 ms");
    scene_expect(other, "S216", "/x: shell client error: ");
    {
        _cleanup_free_ char *list = scene_list();

        ck_assert_ptr_nonnull(strstr(list, "\"status\":\"unreachable\""));
        ck_assert_ptr_nonnull(strstr(list, "\"exec_in_flight\":0,"));
    }
    scene_expect(exec(id, ",\"cmd\":\"a\""), "S300", "\"outcome\":\"never_ran\"");
    guest_call_reply(machine->guest, call, &(struct guest_exec_reply){ .cancelled = true });
    scene_await_status(id, "ready");
    exec_call = exec(id, ",\"cmd\":\"a\"");
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
    scene_expect(exec_call, NULL, "\"success\":true");
    scene_close();
}
END_TEST

START_TEST(test_timeout_zero_starts_nothing)
{
    struct machine *machine;
    char id[37];

    scene_open("");
    machine = scene_create("", id);
    scene_expect(exec(id, ",\"cmd\":\"a\",\"timeout_ms\":0"), "S200",
                 "\"partial\":{\"stdout\":\"\",\"stderr\":\"\",");
    ck_assert_ptr_null(fake_guest_has_call(machine->guest, GUEST_exec));
    scene_close();
}
END_TEST

START_TEST(test_waits_for_the_boot)
{
    _cleanup_free_ char *list = NULL;
    struct machine *machine;
    uint64_t create, exec_call;
    char id[37];

    scene_open("");
    fake_machines.sends_nothing = true;
    create = scene_call("create", "{\"image\":\"img\"}");
    machine = fake_machine(0);
    list = scene_list();
    (void)snprintf(id, sizeof(id), "%.36s", strstr(list, "\"sandbox_id\":\"") + 14);
    exec_call = exec(id, ",\"cmd\":\"a\"");
    turn_for(fixture.loop, 20);
    ck_assert(scene_unanswered(exec_call));
    fake_guest_hello(machine->guest, 1);
    scene_expect(create, NULL, id);
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 7);
    scene_expect(exec_call, NULL, "\"exit_code\":7");
    scene_close();
}
END_TEST

START_TEST(test_lost_with_the_machine)
{
    struct machine *machine;
    char id[37];
    uint64_t exec_call;

    scene_open("");
    machine = scene_create("", id);
    exec_call = exec(id, ",\"cmd\":\"a\"");
    (void)fake_guest_call(machine->guest, GUEST_exec);
    fake_machine_die(machine, "signal 9", "");
    scene_expect(exec_call, "S300", "\"outcome\":\"may_have_run\"");
    scene_expect(exec(id, ",\"cmd\":\"a\""), "S004", "its machine ended: signal 9");
    scene_close();
}
END_TEST

START_TEST(test_lost_with_the_link)
{
    struct machine *machine;
    char id[37];
    uint64_t exec_call;

    scene_open("");
    machine = scene_create("", id);
    exec_call = exec(id, ",\"cmd\":\"a\"");
    (void)fake_guest_call(machine->guest, GUEST_exec);
    fake_guest_raw(machine->guest, "\x01\x00\x00\x00\xc1", 5);
    scene_expect(exec_call, "S300", "broke the protocol");
    TURN_UNTIL(fixture.loop, fake_machines.live == 0);
    scene_expect(exec(id, ",\"cmd\":\"a\""), "S004", "broke the protocol");
    scene_close();
}
END_TEST

START_TEST(test_silent_guest)
{
    struct machine *machine;
    char id[37];
    uint64_t exec_call;

    scene_open("");
    machine = scene_create("", id);
    machine->guest->silent = true;
    exec_call = exec(id, ",\"cmd\":\"a\"");
    (void)fake_guest_call(machine->guest, GUEST_exec);
    scene_pass(14000);
    ck_assert(scene_unanswered(exec_call));
    scene_pass(2500);
    scene_expect(exec_call, "S300", "silent");
    machine->guest->silent = false;
    scene_pass(6000);
    scene_await_status(id, "ready");
    exec_call = exec(id, ",\"cmd\":\"b\"");
    TURN_UNTIL(fixture.loop, list_empty(&machine->guest->calls) == false &&
                                 strcmp(exec_request(LIST_ENTRY(machine->guest->calls.previous,
                                                                struct guest_call, node))
                                            ->argv.items[0],
                                        "b") == 0);
    ck_assert(fake_guest_call(machine->guest, GUEST_exec)->cancelled);
    guest_call_exit(machine->guest,
                    LIST_ENTRY(machine->guest->calls.previous, struct guest_call, node), 0);
    scene_expect(exec_call, NULL, "\"success\":true");
    scene_close();
}
END_TEST

START_TEST(test_cancel_kills)
{
    struct machine *machine;
    struct guest_call *call;
    char id[37];
    uint64_t exec_call;

    scene_open("    max_concurrent_exec_per_sandbox: 1\n");
    machine = scene_create("", id);
    exec_call = exec(id, ",\"cmd\":\"a\"");
    call = fake_guest_call(machine->guest, GUEST_exec);
    scene_cancel(exec_call);
    TURN_UNTIL(fixture.loop, call->cancelled);
    guest_call_reply(machine->guest, call, &(struct guest_exec_reply){ .cancelled = true });
    scene_expect(exec_call, "S300", "its caller is gone");
    exec_call = exec(id, ",\"cmd\":\"a\"");
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
    scene_expect(exec_call, NULL, "\"success\":true");
    scene_close();
}
END_TEST

START_TEST(test_key_outlives_its_caller)
{
    struct machine *machine;
    struct guest_call *call;
    char id[37];
    uint64_t first, second;

    scene_open("");
    machine = scene_create("", id);
    first = exec(id, ",\"cmd\":\"a\",\"idempotency_key\":\"k\"");
    call = fake_guest_call(machine->guest, GUEST_exec);
    scene_cancel(first);
    second = exec(id, ",\"cmd\":\"a\",\"idempotency_key\":\"k\"");
    turn_for(fixture.loop, 20);
    ck_assert(!call->cancelled && scene_unanswered(second));
    guest_call_exit(machine->guest, call, 4);
    scene_expect(second, NULL, "\"exit_code\":4");
    scene_close();
}
END_TEST

START_TEST(test_a_wedged_guest_blocks_nobody)
{
    struct machine *wedged, *well;
    struct buf input = { 0 };
    char ids[2][37];
    uint64_t calls[2];

    scene_open("");
    wedged = scene_create("", ids[0]);
    well = scene_create("", ids[1]);
    loop_io_free(take_ptr(wedged->guest->io)); /* reads nothing, says nothing */
    for (unsigned i = 0; i < 100000; i++)
        ck_assert_int_eq(buf_append_text(&input, "AAAAAAAA"), 0);
    calls[0] = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\",\"stdin\":\"%.*s\"}",
                          ids[0], (int)input.size, (char *)input.data);
    buf_done(&input);
    for (unsigned i = 0; i < 50; i++) {
        calls[1] = exec(ids[1], ",\"cmd\":\"a\"");
        guest_call_exit(well->guest, fake_guest_call(well->guest, GUEST_exec), 0);
        scene_expect(calls[1], NULL, "\"success\":true");
    }
    free(scene_list());
    ck_assert(scene_unanswered(calls[0]));
    scene_pass(16500);
    scene_expect(calls[0], "S300", "\"outcome\":\"may_have_run\"");
    scene_close();
}
END_TEST

UNIT_MAIN("exec", test_reply, test_order_of_checks, test_bad_stdin_gives_the_slot_back,
          test_slots_are_given_back, test_stdin_follows_the_window, test_truncation_and_credit,
          test_timeout_kills_and_answers_with_partial, test_the_guest_noticed_the_timeout_first,
          test_unconfirmed_kill_makes_it_unreachable, test_timeout_zero_starts_nothing,
          test_waits_for_the_boot, test_lost_with_the_machine, test_lost_with_the_link,
          test_silent_guest, test_cancel_kills, test_key_outlives_its_caller,
          test_a_wedged_guest_blocks_nobody)
