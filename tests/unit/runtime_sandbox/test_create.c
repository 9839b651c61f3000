/* test_create.c - create: its checks in their order, its progress, its failures (contract 5.1).
 */
#include <string.h>

#include "disk_room.h"
#include "scene.h"
#include "unit.h"

START_TEST(test_reply_and_progress)
{
    struct message *event;
    char id[37];

    scene_open("");
    scene_create("", id);
    for (unsigned i = 0; i < 5; i++) {
        static const char *const wanted[] = {
            ("{\"event\":\"pulling_image\",\"image_ref\":\"rootfs:/nowhere/img\","
             "\"progress_bytes\":5,\"total_bytes\":10,\"bytes_per_second\":0}"),
            "{\"event\":\"unpacking\",\"stage\":\"unpacking\",\"progress_bytes\":",
            "{\"event\":\"unpacking\",\"stage\":\"sealing\",\"progress_bytes\":0,",
            "{\"event\":\"booting_vm\"}", "\"sandbox_id\":\""
        };

        event = fixture_next(ENVELOPE_EVENT);
        ck_assert_msg(memmem(event->envelope.body.data, event->envelope.body.size, wanted[i],
                             strlen(wanted[i])) != NULL,
                      "event %u is %.*s", i, (int)event->envelope.body.size,
                      event->envelope.body.data);
        free(event);
    }
    scene_create("", id);
    event = fixture_next(ENVELOPE_EVENT);
    ck_assert(span_equals(event->envelope.body, "{\"event\":\"booting_vm\"}"));
    free(event);
    scene_close();
}
END_TEST

/* What a guest has put off until others have started. */
START_TEST(test_a_guest_settles_when_the_back_end_says_so)
{
    struct machine *machine;
    char id[37];

    scene_open("");
    machine = scene_create("", id);
    ck_assert_uint_eq(machine->readies, 1);
    turn_for(fixture.loop, 5);
    ck_assert_uint_eq(machine->guest->pings, 0);
    machine->events->settle(machine->ctx);
    TURN_UNTIL(fixture.loop, machine->settleds == 1);
    ck_assert_uint_eq(machine->guest->pings, 1);
    ck_assert_uint_eq(machine->readies, 1);
    ck_assert_uint_eq(machine->wants, 0);
    scene_close();
}
END_TEST

START_TEST(test_what_the_guest_is_told)
{
    static const struct machine_network network = { .address = "10.0.2.15/24",
                                                    .gateway = "10.0.2.2",
                                                    .dns = "10.0.2.3",
                                                    .own_interface = true };
    struct machine *machine;
    const struct guest_configure *told;
    char id[37];

    scene_open("");
    fake_machines.network = &network;
    machine = scene_create(",\"network\":true,\"cpus\":1,\"memory_mb\":256,"
                           "\"env\":[\"U=http://localhost:1\",\"bad\",\"V=2\"]",
                           id);
    told = &machine->guest->configure;
    ck_assert_str_eq(machine->spec.id, id);
    ck_assert(machine->spec.network);
    ck_assert_uint_eq(machine->spec.memory_mb, 256);
    ck_assert_uint_eq(machine->spec.disk_mb, 4096);
    ck_assert_int_gt(told->realtime_ns, 1600000000000000000);
    ck_assert_uint_eq(strlen(told->seed), 44);
    ck_assert_uint_eq(strlen(told->machine_id), 32);
    ck_assert_int_eq(strncmp(told->hostname, "sandbox-", 8), 0);
    ck_assert_str_eq(told->workdir, "/srv");
    ck_assert_str_eq(told->gateway, "10.0.2.2");
    ck_assert(!told->has_address6);
    ck_assert_uint_eq(told->env.count, 3);
    ck_assert_str_eq(told->env.items[0], "FROM=image");
    ck_assert_str_eq(told->env.items[1], "U=http://10.0.2.2:1");
    ck_assert_str_eq(told->env.items[2], "V=2");
    scene_close();
}
END_TEST

START_TEST(test_no_network_no_rewriting)
{
    struct machine *machine;
    char id[37];

    scene_open("");
    machine = scene_create(",\"env\":{\"U\":\"http://localhost:1\"}", id);
    ck_assert_str_eq(machine->guest->configure.env.items[1], "U=http://localhost:1");
    ck_assert(!machine->guest->configure.has_address);
    scene_close();
}
END_TEST

START_TEST(test_checks)
{
    scene_open("    max_cpus: 2\n"
               "    max_memory_mb: 1024\n"
               "    per_image_caps: {img: {max_cpus: 1, max_memory_mb: 512}}\n");
    scene_expect(scene_call("create", "{}"), "S001", "image");
    scene_expect(scene_call("create", "{\"image\":\"img\",\"cpus\":0}"), "S001", "cpus");
    scene_expect(scene_call("create", "{\"image\":\"other\"}"), "S100", "other");
    scene_expect(scene_call("create", "{\"image\":\"python\"}"), "S100", "python");
    scene_expect(scene_call("create", "{\"image\":\"img\",\"cpus\":2,\"memory_mb\":9000}"),
                 "S400", "cpus 2 exceeds per_image_caps.img.max_cpus 1");
    scene_expect(
        scene_call("create", "{\"image\":\"img\",\"memory_mb\":513,\"env\":{\"1BAD\":\"\"}}"),
        "S400", "memory_mb 513 exceeds per_image_caps.img.max_memory_mb 512");
    scene_expect(scene_call("create", "{\"image\":\"img\",\"env\":{\"1BAD\":\"\"}}"), "S001",
                 "1BAD");
    ck_assert_uint_eq(fake_machines.count, 0);
    scene_close();
}
END_TEST

START_TEST(test_caps_of_the_machine)
{
    scene_open("    default_memory_mb: 4000000000\n");
    scene_expect(scene_call("create", "{\"image\":\"img\",\"cpus\":100000}"), "S400",
                 "(all this machine has)");
    scene_expect(scene_call("create", "{\"image\":\"img\"}"), "S400",
                 "memory_mb 4000000000 exceeds max_memory_mb");
    scene_close();
}
END_TEST

/* No disk holds 4 PiB more. */
START_TEST(test_room_of_layers)
{
    char id[37];

    scene_open("");
    scene_create("", id);
    fixture.scratch_directory = "/tmp";
    fixture_write_settings("    max_disk_mb: 4294967295\n"
                           "    image_allowlist: [img]\n"
                           "    custom_images: {img: 'rootfs:/nowhere/img'}\n");
    adapter_reload(fixture.adapter);
    scene_expect(scene_call("create", "{\"image\":\"img\"}"), "S400",
                 "max_disk_mb 4294967295: the writable layers of 2 sandboxes, this one "
                 "included, may grow by 429497");
    fixture.scratch_directory = NULL;
    scene_create("", id);
    scene_close();
}
END_TEST

START_TEST(test_judgement_of_room)
{
    struct adapter_settings settings = { .max_disk_mb = 100, .disk_promise_percent = 100 };
    const uint64_t mib = 1024 * 1024;
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(disk_room_judge(&settings, "/x", 1000 * mib, 10, 1000 * mib, &err), 0);
    ck_assert_int_eq(disk_room_judge(&settings, "/x", 1000 * mib + 1, 10, 1000 * mib, &err),
                     -1);
    ck_assert_int_eq(err.code, S400);
    ck_assert_ptr_nonnull(strstr(err.message, "max_disk_mb 100: the writable layers of 10"));
    ck_assert_ptr_nonnull(strstr(err.message, "of 1000 MiB free in /x 100 % are promised"));
    ck_assert_ptr_nonnull(strstr(err.message, "disk_promise_percent to 101"));
    sandbox_error_done(&err);
    settings.disk_promise_percent = 200;
    ck_assert_int_eq(disk_room_judge(&settings, "/x", 2000 * mib, 20, 1000 * mib, &err), 0);
    settings.disk_promise_percent = 50;
    ck_assert_int_eq(disk_room_judge(&settings, "/x", 501 * mib, 20, 1000 * mib, &err), -1);
    sandbox_error_done(&err);
}
END_TEST

START_TEST(test_places)
{
    char first[37], second[37];
    struct machine *machine;

    scene_open("    max_concurrent_sandboxes: 1\n");
    machine = scene_create("", first);
    scene_expect(scene_call("create", "{\"image\":\"nope\"}"), "S400",
                 "max_concurrent_sandboxes");
    fake_machine_die(machine, "it was tired", "");
    scene_create("", second);
    ck_assert_str_ne(first, second);
    scene_close();
}
END_TEST

START_TEST(test_a_failed_check_gives_its_place_back)
{
    char id[37];

    scene_open("    max_concurrent_sandboxes: 1\n");
    scene_expect(scene_call("create", "{\"image\":\"nope\"}"), "S100", "nope");
    scene_create("", id);
    scene_close();
}
END_TEST

START_TEST(test_machine_ends_while_booting)
{
    struct machine *machine;
    uint64_t call;

    scene_open("");
    fake_machines.sends_nothing = true;
    call = scene_call("create", "{\"image\":\"img\"}");
    machine = fake_machine(0);
    fake_machine_die(machine, "exit status 1", "Kernel panic");
    scene_expect(call, "S300", "exit status 1; end of the console:\\nKernel panic");
    scene_close();
}
END_TEST

START_TEST(test_boot_outcome)
{
    uint64_t call;

    scene_open("");
    fake_machines.refuses_start = true;
    call = scene_call("create", "{\"image\":\"img\"}");
    scene_expect(call, "S300", "\"outcome\":\"never_ran\"");
    scene_close();
}
END_TEST

START_TEST(test_boot_timeout)
{
    uint64_t call, exec;
    _cleanup_free_ char *list = NULL;
    const char *id;

    scene_open("    boot_timeout_ms: 5000\n");
    fake_machines.sends_nothing = true;
    call = scene_call("create", "{\"image\":\"img\"}");
    fake_machine(0);
    list = scene_list();
    ck_assert_ptr_nonnull(strstr(list, "\"status\":\"creating\""));
    id = strstr(list, "\"sandbox_id\":\"") + 14;
    exec = scene_call("exec", "{\"sandbox_id\":\"%.36s\",\"cmd\":\"ls\"}", id);
    scene_pass(4000);
    ck_assert(scene_unanswered(call));
    scene_pass(2000);
    scene_expect(call, "S300", "boot_timeout_ms 5000");
    scene_expect(exec, "S300", "\"outcome\":\"never_ran\"");
    scene_expect(scene_call("exec", "{\"sandbox_id\":\"%.36s\",\"cmd\":\"ls\"}", id), "S004",
                 "boot failed");
    scene_close();
}
END_TEST

START_TEST(test_agent_of_another_protocol)
{
    uint64_t call;

    scene_open("");
    fake_machines.sends_nothing = true;
    call = scene_call("create", "{\"image\":\"img\"}");
    fake_guest_hello(fake_machine(0)->guest, 2);
    scene_expect(call, "S300", "speaks protocol 2.0");
    scene_close();
}
END_TEST

START_TEST(test_agent_that_breaks_off)
{
    uint64_t call;

    scene_open("");
    fake_machines.guest_keeps_configured = true;
    call = scene_call("create", "{\"image\":\"img\"}");
    TURN_UNTIL(fixture.loop, fake_machine(0)->guest->configured);
    fake_guest_raw(fake_machine(0)->guest, "\xff\xff\xff\xff", 4);
    scene_expect(call, "S300", "broke the protocol");
    scene_close();
}
END_TEST

START_TEST(test_unkillable_after_a_failed_boot)
{
    _cleanup_free_ char *list = NULL;
    uint64_t call;

    scene_open("    boot_timeout_ms: 1000\n");
    fake_machines.sends_nothing = true;
    fake_machines.cannot_be_killed = true;
    call = scene_call("create", "{\"image\":\"img\"}");
    fake_machine(0);
    scene_pass(1500);
    scene_expect(call, "S300", "never_ran");
    list = scene_list();
    ck_assert_ptr_nonnull(strstr(list, "\"status\":\"unreachable\""));
    scene_close();
}
END_TEST

START_TEST(test_cancel_destroys_it)
{
    _cleanup_free_ char *list = NULL;
    uint64_t call;

    scene_open("");
    fake_machines.sends_nothing = true;
    call = scene_call("create", "{\"image\":\"img\"}");
    fake_machine(0);
    scene_cancel(call);
    TURN_UNTIL(fixture.loop, fake_machines.live == 0);
    scene_expect(call, "S300", "its caller is gone");
    list = scene_list();
    ck_assert_str_eq(list, "[]");
    scene_close();
}
END_TEST

/* The router cancels a call only if it has not taken its answer: what the answer told of is
 * known to nobody. */
START_TEST(test_cancel_that_crosses_the_answer)
{
    char id[37], other[37];
    uint64_t call;

    scene_open("");
    scene_create("", other);
    scene_create("", id);
    call = scene_last_call();
    scene_cancel(call);
    TURN_UNTIL(fixture.loop, fake_machines.live == 1);
    scene_expect(scene_call("stop", "{\"sandbox_id\":\"%s\"}", id), "S004",
                 "its caller was gone before it could be told");
    scene_cancel(call); /* once more, and of what never was */
    scene_cancel(77);
    scene_expect(scene_call("stop", "{\"sandbox_id\":\"%s\"}", other), NULL, other);
    scene_close();
}
END_TEST

/* A key's reply is kept, so that a repeat will tell; and an id that was used again names the
 * later call. */
START_TEST(test_cancel_that_crosses_what_is_told_again)
{
    char id[37], other[37];
    uint64_t call;

    scene_open("");
    scene_create(",\"idempotency_key\":\"k\"", id);
    scene_cancel(scene_last_call());
    scene_create("", other);
    call = scene_last_call();
    fixture_call(call, "list", "{}");
    scene_expect(call, NULL, other);
    scene_cancel(call);
    call = scene_call("list", "{}");
    scene_expect(call, NULL, id);
    ck_assert_uint_eq(fake_machines.live, 2);
    scene_close();
}
END_TEST

START_TEST(test_cancel_during_the_install)
{
    uint64_t call;

    scene_open("");
    fixture_script("installer", "exec sleep 60");
    call = scene_call("create", "{\"image\":\"img\"}");
    turn_for(fixture.loop, 50);
    scene_cancel(call);
    scene_expect(call, "S300", "its caller is gone");
    ck_assert_uint_eq(fake_machines.count, 0);
    scene_close();
}
END_TEST

START_TEST(test_install_fails)
{
    scene_open("");
    fixture_script("installer", "echo no luck >&2; exit 1");
    scene_expect(scene_call("create", "{\"image\":\"img\"}"), "S102", "no luck");
    scene_close();
}
END_TEST

START_TEST(test_shutdown_while_creating)
{
    uint64_t call;

    scene_open("");
    fake_machines.sends_nothing = true;
    call = scene_call("create", "{\"image\":\"img\"}");
    fake_machine(0);
    ck_assert(scene_unanswered(call));
    scene_close();
}
END_TEST

UNIT_MAIN("create", test_reply_and_progress, test_a_guest_settles_when_the_back_end_says_so,
          test_what_the_guest_is_told, test_no_network_no_rewriting, test_checks,
          test_caps_of_the_machine, test_room_of_layers, test_judgement_of_room, test_places,
          test_a_failed_check_gives_its_place_back, test_machine_ends_while_booting,
          test_boot_outcome, test_boot_timeout, test_agent_of_another_protocol,
          test_agent_that_breaks_off, test_unkillable_after_a_failed_boot,
          test_cancel_destroys_it, test_cancel_that_crosses_the_answer,
          test_cancel_that_crosses_what_is_told_again, test_cancel_during_the_install,
          test_install_fails, test_shutdown_while_creating)
