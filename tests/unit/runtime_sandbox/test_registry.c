/* test_registry.c - which ids are known, and for how long after the end (contract 4.2). */
#include <stdio.h>
#include <string.h>

#include "registry.h"
#include "sandboxes.h"
#include "scene.h"
#include "stop.h"
#include "unit.h"

static struct registry *registry_open(void)
{
    scene_open("");
    return sandboxes_registry(adapter_sandboxes(fixture.adapter));
}

static struct sandbox *reserve(struct registry *registry)
{
    const struct sandbox_spec spec = { .image = "img" };
    struct sandbox_error err = { 0 };
    struct sandbox *sandbox;

    ck_assert_int_eq(registry_reserve(registry, 1, &spec, &sandbox, &err), 0);
    return sandbox;
}

static void expect_code(const struct registry *registry, const char *id, enum sandbox_code code,
                        const char *text)
{
    struct sandbox_error err = { 0 };
    struct sandbox *sandbox;

    ck_assert_int_eq(registry_find(registry, id, &sandbox, &err), -1);
    ck_assert_int_eq(err.code, code);
    ck_assert_ptr_nonnull(strstr(err.message, id));
    ck_assert_ptr_nonnull(strstr(err.message, text));
}

START_TEST(test_an_end_is_remembered_for_an_hour)
{
    struct registry *registry = registry_open();
    struct sandbox *sandbox = reserve(registry);
    char id[37];

    (void)snprintf(id, sizeof(id), "%s", sandbox_id(sandbox));
    sandbox_discard(sandbox, "it was made in vain");
    sandbox_unref(sandbox);
    expect_code(registry, id, S004, "it was made in vain, at 20");
    fake_clock_pass(fixture.loop, 60 * 60 * 1000 - 1000);
    expect_code(registry, id, S004, "it was made in vain");
    fake_clock_pass(fixture.loop, 1000);
    expect_code(registry, id, S002, "does not exist");
    scene_close();
}
END_TEST

START_TEST(test_the_last_1024_ends_are_remembered)
{
    struct registry *registry = registry_open();
    char ids[REGISTRY_ENDED_MAX + 1][37];

    for (unsigned i = 0; i < REGISTRY_ENDED_MAX + 1; i++) {
        struct sandbox *sandbox = reserve(registry), *found;
        struct sandbox_error err = { 0 };

        (void)snprintf(ids[i], sizeof(ids[i]), "%s", sandbox_id(sandbox));
        ck_assert_int_eq(registry_find(registry, ids[i], &found, &err), 0);
        ck_assert_ptr_eq(found, sandbox);
        sandbox_discard(sandbox, "it was made to be counted");
        sandbox_unref(sandbox);
    }
    turn_for(fixture.loop, 5);
    expect_code(registry, ids[0], S002, "");
    expect_code(registry, ids[1], S004, "");
    expect_code(registry, ids[REGISTRY_ENDED_MAX], S004, "");
    scene_close();
}
END_TEST

START_TEST(test_places_are_counted_exactly)
{
    struct registry *registry = registry_open();
    const struct sandbox_spec spec = { .image = "img" };
    struct sandbox_error err = { 0 }, again = { 0 };
    struct sandbox *first, *second;

    ck_assert_int_eq(registry_reserve(registry, 0, &spec, &first, &err), -1);
    ck_assert_int_eq(err.code, S400);
    first = reserve(registry);
    ck_assert_int_eq(registry_reserve(registry, 1, &spec, &second, &again), -1);
    ck_assert_ptr_nonnull(strstr(again.message, "max_concurrent_sandboxes is 1"));
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
