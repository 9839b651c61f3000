/* test_list.c - list, and the idle clock as it shows there (contract 5.3, 10). */
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "unit.h"

START_TEST(test_empty)
{
    _cleanup_free_ char *list = NULL;

    scene_open("");
    list = scene_list();
    ck_assert_str_eq(list, "[]");
    scene_close();
}
END_TEST

START_TEST(test_keys_and_order)
{
    _cleanup_free_ char *list = NULL;
    char first[37], second[37], wanted[256];

    scene_open("    max_concurrent_exec_per_sandbox: 3\n");
    scene_create(",\"name\":\"one\",\"cpus\":1,\"memory_mb\":300,\"network\":true", first);
    scene_create("", second);
    list = scene_list();
    (void)snprintf(
        wanted, sizeof(wanted),
        "[{\"sandbox_id\":\"%s\",\"name\":\"one\",\"image\":\"img\",\"age_secs\":", first);
    ck_assert_int_eq(strncmp(list, wanted, strlen(wanted)), 0);
    ck_assert_ptr_nonnull(strstr(list, "\"exec_in_progress\":false,\"exec_in_flight\":0,"
                                       "\"exec_slots_free\":3,\"stopped\":false,"
                                       "\"created_at\":"));
    ck_assert_ptr_nonnull(strstr(list, "\"idle_secs\":0,\"cpus\":1,\"memory_mb\":300,"
                                       "\"network\":true,\"status\":\"ready\"},{"));
    ck_assert_ptr_nonnull(strstr(list, "\"name\":null"));
    ck_assert(strstr(list, first) < strstr(list, second));
    scene_close();
}
END_TEST

START_TEST(test_exec_in_flight_and_free_slots)
{
    _cleanup_free_ char *list = NULL;
    struct machine *machine;
    char id[37];

    scene_open("    max_concurrent_exec_per_sandbox: 2\n");
    machine = scene_create("", id);
    (void)scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id);
    (void)fake_guest_call(machine->guest, GUEST_exec);
    list = scene_list();
    ck_assert_ptr_nonnull(
        strstr(list, "\"exec_in_progress\":true,\"exec_in_flight\":1,\"exec_slots_free\":1"));
    scene_close();
}
END_TEST

static uint64_t idle_secs_shown(void)
{
    _cleanup_free_ char *list = scene_list();

    return strtoull(strstr(list, "\"idle_secs\":") + 12, NULL, 10);
}

START_TEST(test_idle_clock)
{
    struct machine *machine;
    struct guest_call *call;
    char id[37];
    uint64_t exec;

    scene_open("");
    machine = scene_create("", id);
    scene_pass(5000);
    ck_assert_uint_ge(idle_secs_shown(), 5);
    exec = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id);
    call = fake_guest_call(machine->guest, GUEST_exec);
    ck_assert_uint_eq(idle_secs_shown(), 0);
    scene_pass(3000);
    ck_assert_uint_ge(idle_secs_shown(), 3);
    guest_call_exit(machine->guest, call, 0);
    scene_expect(exec, NULL, "\"success\":true");
    ck_assert_uint_eq(idle_secs_shown(), 0);
    scene_pass(7000);
    machine->payload_secs = (int64_t)(loop_now_ms(fixture.loop) / 1000) - 2;
    ck_assert_uint_eq(idle_secs_shown(), 2);
    scene_close();
}
END_TEST

UNIT_MAIN("list", test_empty, test_keys_and_order, test_exec_in_flight_and_free_slots,
          test_idle_clock)
