/* test_registry.c - which ids are known, and for how long after the end (contract 4.2). */
#include <stdio.h>
#include <string.h>

#include "registry.h"
#include "sandboxes.h"
#include "scene.h"
#include "stop.h"
#include "unit.h"

static void stop(const char *id, struct machine *machine)
{
    uint64_t call = scene_call("stop", "{\"sandbox_id\":\"%s\"}", id);

    machine->guest->ignores_poweroff = true;
    (void)fake_guest_call(machine->guest, GUEST_poweroff);
    fake_machine_die(machine, "off", "");
    scene_expect(call, NULL, "\"stopped\":true");
}

static void expect_exec(const char *id, const char *code)
{
    scene_expect(scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id), code, id);
}

START_TEST(test_an_end_is_remembered_for_an_hour)
{
    char id[37];

    scene_open("");
    stop(id, scene_create("", id));
    expect_exec(id, "S004");
    fake_clock_pass(fixture.loop, 59 * 60 * 1000);
    scene_pass(1000);
    expect_exec(id, "S004");
    scene_pass(60 * 1000);
    expect_exec(id, "S002");
    scene_close();
}
END_TEST

START_TEST(test_the_last_1024_ends_are_remembered)
{
    struct registry *registry;
    struct sandbox_error err = { 0 };
    const struct sandbox_spec spec = { .image = "img" };
    char ids[REGISTRY_ENDED_MAX + 1][37];

    scene_open("");
    registry = sandboxes_registry(adapter_sandboxes(fixture.adapter));
    for (unsigned i = 0; i < REGISTRY_ENDED_MAX + 1; i++) {
        struct sandbox *sandbox, *found;

        ck_assert_int_eq(registry_reserve(registry, 1, &spec, &sandbox, &err), 0);
        (void)snprintf(ids[i], sizeof(ids[i]), "%s", sandbox_id(sandbox));
        ck_assert_int_eq(registry_find(registry, ids[i], &found, &err), 0);
        ck_assert_ptr_eq(found, sandbox);
        sandbox_discard(sandbox, "it was made to be counted");
        sandbox_unref(sandbox);
    }
    turn_for(fixture.loop, 5);
    expect_exec(ids[0], "S002");
    expect_exec(ids[1], "S004");
    expect_exec(ids[REGISTRY_ENDED_MAX], "S004");
    scene_close();
}
END_TEST

START_TEST(test_places_are_counted_exactly)
{
    struct registry *registry;
    struct sandbox_error err = { 0 };
    const struct sandbox_spec spec = { .image = "img" };
    struct sandbox *first, *second;

    scene_open("");
    registry = sandboxes_registry(adapter_sandboxes(fixture.adapter));
    ck_assert_int_eq(registry_reserve(registry, 0, &spec, &first, &err), -1);
    ck_assert_int_eq(err.code, S400);
    err = (struct sandbox_error){ 0 };
    ck_assert_int_eq(registry_reserve(registry, 1, &spec, &first, &err), 0);
    ck_assert_int_eq(registry_reserve(registry, 1, &spec, &second, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "max_concurrent_sandboxes is 1"));
    sandbox_discard(first, "over");
    ck_assert_uint_eq(registry_count(registry), 0);
    sandbox_unref(first);
    turn_for(fixture.loop, 5);
    scene_close();
}
END_TEST

START_TEST(test_forms_of_an_id)
{
    struct machine *machine;
    char id[37], hex[33] = "", upper[48];
    uint64_t call;

    scene_open("");
    machine = scene_create("", id);
    for (unsigned i = 0, j = 0; id[i]; i++) {
        if (id[i] != '-')
            hex[j++] = id[i];
    }
    (void)snprintf(upper, sizeof(upper), "urn:uuid:%s", id);
    for (unsigned i = 9; upper[i]; i++)
        upper[i] = (char)(upper[i] >= 'a' ? upper[i] - 32 : upper[i]);
    for (unsigned i = 0; i < 2; i++) {
        call = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", i ? hex : upper);
        guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
        scene_expect(call, NULL, "\"success\":true");
    }
    scene_close();
}
END_TEST

UNIT_MAIN("registry", test_an_end_is_remembered_for_an_hour,
          test_the_last_1024_ends_are_remembered, test_places_are_counted_exactly,
          test_forms_of_an_id)
