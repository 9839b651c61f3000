/* test_reaper.c - the reaper against calls that come at the same time, slots that are never
 * given back, and clocks that jump (contract 10). Ticks come when the test wants them. */
#include "reaper.h"

#include <stdio.h>

#include "sandboxes.h"
#include "scene.h"
#include "turn.h"
#include "unit.h"

#define RACES 500
#define TURNS_OF_AN_EXEC 8 /* from the router to the guest it takes fewer */
#define TURN_MS 2          /* for what is on its way between threads */

static struct reaper *reaper;

static struct registry *registry(void)
{
    return sandboxes_registry(adapter_sandboxes(fixture.adapter));
}

static void begin(const char *settings)
{
    scene_open(settings);
    ck_assert_int_eq(reaper_new(fixture.adapter, registry(), &reaper), 0);
}

static void end(void)
{
    reaper_free(reaper);
    scene_close();
}

static struct sandbox *find(const char *id)
{
    struct sandbox_error err = { 0 };
    struct sandbox *sandbox = NULL;

    (void)registry_find(registry(), id, &sandbox, &err);
    sandbox_error_done(&err);
    return sandbox;
}

static bool is_reaped(const char *id)
{
    const struct sandbox *sandbox = find(id);

    return !sandbox || sandbox_state(sandbox) == SANDBOX_STOPPING;
}

/* A tick each half second takes it away as soon as it was idle for more than LIMIT, however
 * slow this machine is, and not before. What list says by then. */
static void expect_reaped_beyond(const char *id, uint64_t limit)
{
    uint64_t idle;

    do {
        scene_pass(500);
        if (is_reaped(id)) /* by the adapter's own tick, which came first */
            return;
        idle = sandbox_idle_secs(find(id));
        reaper_tick(reaper);
        ck_assert_msg(is_reaped(id) == (idle > limit), "idle for %llu s, limit %llu s",
                      (unsigned long long)idle, (unsigned long long)limit);
    } while (idle <= limit);
}

static void wait_gone_to(unsigned count)
{
    for (unsigned i = 0; i < 10 && fake_machines.live > count; i++)
        scene_pass(100); /* a guest is given 200 ms to end by itself */
    ck_assert_uint_eq(fake_machines.live, count);
}

/* An exec that has begun is answered, and its sandbox stays; another one gets S004, and the
 * guest never hears of it. */
static bool race(unsigned turns)
{
    char id[37];
    struct machine *machine = scene_create(",\"idle_timeout_secs\":0", id);
    struct guest_call *call;
    uint64_t exec;

    scene_pass(1000);
    exec = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id);
    for (unsigned i = 0; i < turns; i++)
        ck_assert_int_eq(loop_turn(fixture.loop, TURN_MS), 0);
    reaper_tick(reaper);
    if (is_reaped(id)) {
        if (find(id)) /* else the adapter's own tick came first, and all is over */
            ck_assert_ptr_null(fake_guest_has_call(machine->guest, GUEST_exec));
        scene_expect(exec, "S004", "and was reaped");
        wait_gone_to(0);
        return false;
    }
    call = fake_guest_call(machine->guest, GUEST_exec);
    guest_call_exit(machine->guest, call, 0);
    scene_expect(exec, NULL, "\"success\":true");
    expect_reaped_beyond(id, 0);
    wait_gone_to(0);
    return true;
}

START_TEST(test_exec_against_reaper)
{
    unsigned ran = 0;

    begin("");
    for (unsigned i = 0; i < RACES; i++)
        ran += race(i % TURNS_OF_AN_EXEC);
    /* Both ends were seen, or it was no race. */
    ck_assert_uint_ge(ran, RACES / TURNS_OF_AN_EXEC);
    ck_assert_uint_ge(RACES - ran, RACES / TURNS_OF_AN_EXEC);
    end();
}
END_TEST

START_TEST(test_own_limit_to_the_second)
{
    char id[37], other[37], wanted[32];
    char *list;

    begin("    default_idle_timeout_secs: 5\n");
    scene_create(",\"idle_timeout_secs\":12", id);
    scene_create("", other);
    expect_reaped_beyond(other, 5);
    wait_gone_to(1);
    list = scene_list();
    (void)snprintf(wanted, sizeof(wanted), "\"idle_secs\":%llu",
                   (unsigned long long)sandbox_idle_secs(find(id)));
    ck_assert_msg(strstr(list, wanted) != NULL, "%s in %s", wanted, list);
    free(list);
    expect_reaped_beyond(id, 12);
    end();
}
END_TEST

/* Nobody gives it back: it holds the sandbox for as long as an exec may take, and a minute. */
START_TEST(test_leaked_slot)
{
    struct sandbox_error err = { 0 };
    char id[37];

    begin("    max_exec_timeout_ms: 1500\n");
    scene_create(",\"idle_timeout_secs\":3", id);
    ck_assert_int_eq(sandbox_take_slot(find(id), 4, &err), 0);
    expect_reaped_beyond(id, 3 + 2 + 60);
    sandbox_give_slot(find(id));
    end();
}
END_TEST

START_TEST(test_wall_clock_jumps)
{
    static const int64_t jumps_secs[] = { 10ll * 365 * 86400, -20ll * 365 * 86400, 86400 };
    char id[37];

    begin("");
    scene_create(",\"idle_timeout_secs\":60", id);
    for (size_t i = 0; i < ARRAY_SIZE(jumps_secs); i++) {
        fake_clock_set_wall(jumps_secs[i]);
        scene_pass(1000);
        ck_assert_uint_lt(sandbox_idle_secs(find(id)), 60);
        reaper_tick(reaper);
        ck_assert(!is_reaped(id));
    }
    expect_reaped_beyond(id, 60);
    fake_clock_set_wall(0);
    end();
}
END_TEST

/* The process was stopped, or its machine: what came meanwhile is looked at before a tick. */
START_TEST(test_late_tick_reaps_nothing)
{
    char id[37];
    struct machine *machine;
    uint64_t call;

    begin("");
    machine = scene_create(",\"idle_timeout_secs\":12", id);
    scene_pass(REAPER_TICK_MS - 200);
    fake_clock_advance(REAPER_LATE_MS + 500);
    call = scene_call("exec", "{\"sandbox_id\":\"%s\",\"cmd\":\"a\"}", id);
    TURN_UNTIL(fixture.loop, fake_guest_has_call(machine->guest, GUEST_exec));
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
    scene_expect(call, NULL, "\"success\":true");
    scene_pass(11000); /* a tick that is in time finds it used */
    ck_assert_uint_eq(fake_machines.live, 1);
    end();
}
END_TEST

UNIT_MAIN("reaper", test_exec_against_reaper, test_own_limit_to_the_second, test_leaked_slot,
          test_wall_clock_jumps, test_late_tick_reaps_nothing)
