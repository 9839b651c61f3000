/* test_stop.c - stop, the reaper, and machines that do not want to end (contract 5.4, 10). */
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "unit.h"

static uint64_t stop(const char *id)
{
    return scene_call("stop", "{\"sandbox_id\":\"%s\"}", id);
}

START_TEST(test_reply)
{
    struct machine *machine;
    char id[37], wanted[96];
    uint64_t call;

    scene_open("");
    machine = scene_create("", id);
    machine->guest->ignores_poweroff = true;
    ck_assert_uint_eq(machine->wants, 0);
    call = stop(id);
    (void)fake_guest_call(machine->guest, GUEST_poweroff);
    ck_assert_uint_eq(machine->wants, 1); /* the back end knows that it is spoken to */
    fake_machine_die(machine, "powered off", "");
    (void)snprintf(wanted, sizeof(wanted), "{\"sandbox_id\":\"%s\",\"stopped\":true}", id);
    fixture_expect_reply(call, wanted);
    scene_expect(stop(id), "S004", "it was stopped, at 20");
    scene_expect(scene_call("fs::ls", "{\"sandbox_id\":\"%s\",\"path\":\"/\"}", id), "S004",
                 "it was stopped");
    scene_close();
}
END_TEST

START_TEST(test_checks)
{
    scene_open("");
    scene_expect(scene_call("stop", "{}"), "S001", "sandbox_id");
    scene_expect(stop(""), "S001", "sandbox_id");
    scene_expect(stop("01234567-89ab-4def-8123-456789abcdef"), "S002", "01234567");
    scene_close();
}
END_TEST

START_TEST(test_killed_after_200_ms)
{
    struct machine *machine;
    char id[37];
    uint64_t call, asked_ms;

    scene_open("");
    machine = scene_create("", id);
    machine->guest->ignores_poweroff = true;
    asked_ms = loop_now_ms(fixture.loop);
    call = stop(id);
    (void)fake_guest_call(machine->guest, GUEST_poweroff);
    TURN_UNTIL(fixture.loop, machine->kills == 1);
    ck_assert_uint_ge(loop_now_ms(fixture.loop) - asked_ms, 200);
    scene_expect(call, NULL, "\"stopped\":true");
    TURN_UNTIL(fixture.loop, fake_machines.live == 0);
    scene_close();
}
END_TEST

START_TEST(test_second_stop_joins_and_execs_are_refused)
{
    struct machine *machine;
    char id[37];
    uint64_t first, second;

    scene_open("");
    machine = scene_create("", id);
    machine->guest->ignores_poweroff = true;
    first = stop(id);
    second = scene_call("stop", "{\"sandbox_id\":\"%s\",\"wait\":true}", id);
    scene_expect(scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id), "S004",
                 "is being stopped");
    ck_assert(scene_unanswered(first) && scene_unanswered(second));
    fake_machine_die(machine, "off", "");
    scene_expect(first, NULL, "\"stopped\":true");
    scene_expect(second, NULL, "\"stopped\":true");
    ck_assert_uint_eq(fake_machines.live, 0);
    scene_close();
}
END_TEST

START_TEST(test_calls_in_flight)
{
    struct machine *machine;
    char id[37];
    uint64_t exec, files;

    scene_open("");
    machine = scene_create("", id);
    exec = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id);
    files = scene_call("fs::stat", "{\"sandbox_id\":\"%s\",\"path\":\"/p\"}", id);
    (void)fake_guest_call(machine->guest, GUEST_exec);
    (void)fake_guest_call(machine->guest, GUEST_fs_stat);
    (void)stop(id);
    {
        _cleanup_free_ char *answer = scene_answer(exec);

        ck_assert_ptr_nonnull(strstr(answer, "\"code\":\"S300\""));
        ck_assert_ptr_nonnull(strstr(answer, "stopped"));
        ck_assert_ptr_nonnull(strstr(answer, "\"outcome\":\"may_have_run\""));
    }
    scene_expect(files, "S216", "/p: shell client error: it was stopped");
    scene_close();
}
END_TEST

START_TEST(test_cannot_be_killed)
{
    struct machine *machine;
    char id[37];
    uint64_t call;

    scene_open("");
    machine = scene_create("", id);
    machine->guest->ignores_poweroff = true;
    fake_machines.cannot_be_killed = true;
    call = stop(id);
    scene_pass(300);
    scene_expect(call, "S300", "\"outcome\":\"may_have_run\"");
    {
        _cleanup_free_ char *list = scene_list();

        ck_assert_ptr_nonnull(strstr(list, "\"status\":\"ready\""));
    }
    call = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id);
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
    scene_expect(call, NULL, "\"success\":true");
    fake_machines.cannot_be_killed = false;
    call = stop(id);
    scene_pass(300);
    scene_expect(call, NULL, "\"stopped\":true");
    scene_close();
}
END_TEST

START_TEST(test_does_not_end_although_killed)
{
    struct machine *machine;
    char id[37];
    uint64_t call;

    scene_open("");
    machine = scene_create("", id);
    machine->guest->ignores_poweroff = true;
    fake_machines.ignores_kills = true;
    call = stop(id);
    scene_pass(4000);
    ck_assert(scene_unanswered(call));
    scene_pass(2000);
    scene_expect(call, "S300", "did not end");
    fake_machine_die(machine, "at last", "");
    scene_expect(stop(id), "S004", "its machine ended: at last");
    scene_close();
}
END_TEST

START_TEST(test_stop_while_creating)
{
    _cleanup_free_ char *list = NULL;
    struct machine *machine;
    uint64_t create, call;

    scene_open("");
    fake_machines.sends_nothing = true;
    create = scene_call("create", "{\"image\":\"img\"}");
    machine = fake_machine(0);
    list = scene_list();
    call = scene_call("stop", "{\"sandbox_id\":\"%.36s\"}",
                      strstr(list, "\"sandbox_id\":\"") + 14);
    turn_for(fixture.loop, 20);
    ck_assert(scene_unanswered(call));
    fake_guest_hello(machine->guest, 1);
    scene_expect(create, NULL, "sandbox_id");
    scene_pass(300);
    scene_expect(call, NULL, "\"stopped\":true");
    scene_close();
}
END_TEST

START_TEST(test_stop_of_a_boot_that_fails)
{
    _cleanup_free_ char *list = NULL;
    struct machine *machine;
    uint64_t create, call;

    scene_open("");
    fake_machines.sends_nothing = true;
    create = scene_call("create", "{\"image\":\"img\"}");
    machine = fake_machine(0);
    list = scene_list();
    call = scene_call("stop", "{\"sandbox_id\":\"%.36s\"}",
                      strstr(list, "\"sandbox_id\":\"") + 14);
    scene_heard();
    fake_machine_die(machine, "panic", "");
    scene_expect(create, "S300", "panic");
    scene_expect(call, NULL, "\"stopped\":true");
    scene_close();
}
END_TEST

START_TEST(test_reaped_when_idle)
{
    char id[37];

    scene_open("");
    scene_create(",\"idle_timeout_secs\":20", id);
    scene_pass(19000);
    ck_assert_uint_eq(fake_machines.live, 1);
    scene_pass(14000);
    TURN_UNTIL(fixture.loop, fake_machines.live == 0);
    scene_expect(scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id), "S004",
                 "reaped");
    scene_close();
}
END_TEST

START_TEST(test_activity_keeps_it)
{
    struct machine *machine;
    char id[37];

    scene_open("");
    machine = scene_create(",\"idle_timeout_secs\":20", id);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t call = scene_call("fs::stat", "{\"sandbox_id\":\"%s\",\"path\":\"/p\"}", id);

        guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_stat), "S211",
                         "/p", false);
        scene_expect(call, "S211", "/p");
        scene_pass(15000);
        free(scene_list());
    }
    ck_assert_uint_eq(fake_machines.live, 1);
    machine->payload_secs = (int64_t)(loop_now_ms(fixture.loop) / 1000);
    scene_pass(15000);
    ck_assert_uint_eq(fake_machines.live, 1);
    scene_pass(20000);
    ck_assert_uint_eq(fake_machines.live, 0);
    scene_close();
}
END_TEST

START_TEST(test_refused_calls_do_not_keep_it)
{
    char id[37];

    scene_open("");
    scene_create(",\"idle_timeout_secs\":20", id);
    for (unsigned i = 0; i < 4; i++) {
        scene_pass(9000);
        scene_expect(scene_call("fs::sed",
                                "{\"sandbox_id\":\"%s\",\"pattern\":\"a\","
                                "\"replacement\":\"b\"}",
                                id),
                     "S210", "exactly one");
    }
    ck_assert_uint_eq(fake_machines.live, 0);
    scene_close();
}
END_TEST

START_TEST(test_exec_in_flight_keeps_it_until_leaked)
{
    char id[37];
    uint64_t call;

    scene_open("    max_exec_timeout_ms: 5000\n");
    scene_create(",\"idle_timeout_secs\":0", id);
    call = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id);
    (void)fake_guest_call(fake_machine(0)->guest, GUEST_exec);
    scene_pass(4000);
    ck_assert(scene_unanswered(call));
    ck_assert_uint_eq(fake_machines.live, 1);
    scene_pass(25000);
    scene_expect(call, "S200", "5000");
    ck_assert_uint_eq(fake_machines.live, 0);
    scene_close();
}
END_TEST

START_TEST(test_reaper_tries_again)
{
    char id[37];

    scene_open("");
    scene_create(",\"idle_timeout_secs\":5", id);
    fake_machines.cannot_be_killed = true;
    scene_pass(25000);
    ck_assert_uint_eq(fake_machines.live, 1);
    ck_assert_uint_ge(fake_machine(0)->kills, 1);
    fake_machines.cannot_be_killed = false;
    scene_pass(11000);
    ck_assert_uint_eq(fake_machines.live, 0);
    scene_close();
}
END_TEST

UNIT_MAIN("stop", test_reply, test_checks, test_killed_after_200_ms,
          test_second_stop_joins_and_execs_are_refused, test_calls_in_flight,
          test_cannot_be_killed, test_does_not_end_although_killed, test_stop_while_creating,
          test_stop_of_a_boot_that_fails, test_reaped_when_idle, test_activity_keeps_it,
          test_refused_calls_do_not_keep_it, test_exec_in_flight_keeps_it_until_leaked,
          test_reaper_tries_again)
