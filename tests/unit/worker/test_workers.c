/* test_workers.c - worker VMs over guests that the test plays: restarts against a clock that
 * the test puts forward, what is remembered, and ends that come at the wrong moment (contract
 * 12.2). */
#include "workers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "scene.h"
#include "unit.h"
#include "worker.h"

#define SECOND_MS 1000u
#define HOUR_MS (3600u * SECOND_MS)

static struct workers *workers;

static bool serve(struct fixture *self, const char *operation, struct request *request)
{
    return workers_serve(&workers, WORKERS_FOLDER, operation, request);
}

/* The source of all: SCRIPTS are further lines of its section. */
static void begin(const char *scripts)
{
    char path[128];
    FILE *file;

    fixture.features[0] = "worker";
    scene_open("    allowed_roots: [/tmp]\n");
    fixture.own_operation = serve;
    (void)snprintf(path, sizeof(path), "%s/source", fixture.directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/source/iii.worker.yaml", fixture.directory);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "name: w\n"
            "runtime: { base_image: img }\n"
            "resources: { cpus: 1, memory: 256 }\n"
            "scripts:\n"
            "  start: run\n%s",
            scripts);
    ck_assert_int_eq(fclose(file), 0);
}

static void on_stopped(void *ctx)
{
    *(bool *)ctx = true;
}

static void end(void)
{
    bool stopped = false;

    workers_stop_all(workers, on_stopped, &stopped);
    for (unsigned i = 0; i < 100 && !stopped; i++)
        scene_pass(SECOND_MS);
    ck_assert(stopped);
    workers_free(workers);
    workers = NULL;
    scene_close();
    fixture.own_operation = NULL;
}

static uint64_t start(void)
{
    return scene_call("worker::start",
                      "{\"source\":{\"host_path\":\"%s/source\"},\"state_key\":\"k\","
                      "\"instance\":\"i\",\"auth_token\":\"t\"}",
                      fixture.directory);
}

static uint64_t prepare(void)
{
    return scene_call("worker::prepare",
                      "{\"source\":{\"host_path\":\"%s/source\"},\"state_key\":\"k\"}",
                      fixture.directory);
}

/* What is asked of the VM: status, logs, stop. */
static uint64_t ask(const char *operation, const char *id)
{
    return scene_call(operation, "{\"vm_id\":\"%s\",\"instance\":\"i\",\"auth_token\":\"t\"}",
                      id);
}

static void tell_head(struct machine *machine, const struct guest_call *call)
{
    fake_guest_map(machine->guest, AGENT_FRAME_HEAD, call->id, &type_guest_empty,
                   &(struct guest_empty){ 0 });
}

/* A worker whose script has begun; *ret_id has room for 37 bytes. */
static struct machine *started(char *ret_id)
{
    static const char key[] = "\"vm_id\":\"";
    unsigned index = fake_machines.count;
    uint64_t call = start();
    struct machine *machine = fake_machine(index);
    char *answer;
    const char *id;

    tell_head(machine, fake_guest_call(machine->guest, GUEST_exec));
    answer = scene_answer(call);
    id = strstr(answer, key);
    ck_assert_msg(id != NULL, "start answered %s", answer);
    (void)snprintf(ret_id, UUID_TEXT_BYTES, "%.36s", id + strlen(key));
    free(answer);
    return machine;
}

static void script_exits(struct machine *machine, int32_t code)
{
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), code);
}

/* It is about to be. */
static void expect_state(const char *id, const char *state)
{
    char wanted[32];
    bool seen = false;

    (void)snprintf(wanted, sizeof(wanted), "\"state\":\"%s\"", state);
    for (unsigned i = 0; i < 20 && !seen; i++) {
        char *answer = scene_answer(ask("worker::status", id));

        seen = strstr(answer, wanted) != NULL;
        free(answer);
    }
    ck_assert_msg(seen, "never %s", state);
}

/* The script fails, and is run again after MS, no sooner and not much later. */
static void expect_run_after(struct machine *machine, const char *id, uint64_t ms)
{
    uint64_t failed_ms = loop_now_ms(fixture.loop), run_ms;

    script_exits(machine, 3);
    expect_state(id, "starting");
    while (!fake_guest_has_call(machine->guest, GUEST_exec) &&
           loop_now_ms(fixture.loop) - failed_ms < 2 * ms)
        scene_pass(50);
    run_ms = loop_now_ms(fixture.loop) - failed_ms;
    ck_assert_msg(run_ms >= ms && run_ms < 2 * ms, "%llu ms instead of %llu",
                  (unsigned long long)run_ms, (unsigned long long)ms);
    tell_head(machine, fake_guest_call(machine->guest, GUEST_exec));
}

static void expect_restarts(const char *id, unsigned restarts)
{
    char wanted[32];

    (void)snprintf(wanted, sizeof(wanted), "\"restarts\":%u", restarts);
    scene_expect(ask("worker::status", id), NULL, wanted);
}

/* Its VM syncs, is powered off and gone. */
static void expect_exited(struct machine *machine, const char *id)
{
    guest_call_reply(machine->guest, fake_guest_call(machine->guest, GUEST_sync),
                     &(struct guest_empty){ 0 });
    for (unsigned i = 0; i < 20 && fake_machines.live > 0; i++)
        scene_pass(100);
    ck_assert_uint_eq(fake_machines.live, 0);
    expect_state(id, "exited");
}

/* 1, 2, 4, 8 and 16 s apart, and then no more. */
START_TEST(test_back_off)
{
    struct machine *machine;
    char id[37];

    begin("");
    machine = started(id);
    expect_restarts(id, 0);
    for (unsigned i = 0; i < WORKER_RESTARTS_MAX; i++) {
        expect_run_after(machine, id, (uint64_t)SECOND_MS << i);
        expect_restarts(id, i + 1);
    }
    script_exits(machine, 4);
    expect_exited(machine, id);
    expect_restarts(id, WORKER_RESTARTS_MAX);
    scene_expect(ask("worker::status", id), NULL, "\"exit_code\":4");
    end();
}
END_TEST

/* A run of a minute makes the failures before it forgotten; a shorter one does not. */
START_TEST(test_steady_run)
{
    struct machine *machine;
    char id[37];

    begin("");
    machine = started(id);
    for (unsigned i = 0; i < 2; i++) {
        expect_run_after(machine, id, (uint64_t)SECOND_MS << i);
    }
    scene_pass(WORKER_STEADY_MS - 2 * SECOND_MS);
    expect_restarts(id, 2);
    expect_run_after(machine, id, 4 * SECOND_MS);
    expect_restarts(id, 3);
    scene_pass(WORKER_STEADY_MS);
    expect_restarts(id, 0);
    expect_run_after(machine, id, SECOND_MS);
    expect_restarts(id, 1);
    end();
}
END_TEST

/* Nothing that the wall clock does moves a pause or what is remembered. */
START_TEST(test_wall_clock_jumps)
{
    struct machine *machine;
    char id[37];

    begin("");
    machine = started(id);
    fake_clock_set_wall(-1000000);
    expect_run_after(machine, id, SECOND_MS);
    fake_clock_set_wall(1000000);
    expect_run_after(machine, id, 2 * SECOND_MS);
    script_exits(machine, 0);
    expect_exited(machine, id);
    fake_clock_set_wall(0);
    scene_expect(ask("worker::status", id), NULL, "\"state\":\"exited\"");
    end();
}
END_TEST

START_TEST(test_forgotten_after_an_hour)
{
    struct machine *machine;
    char id[37];

    begin("");
    machine = started(id);
    script_exits(machine, 0);
    expect_exited(machine, id);
    fake_clock_pass(fixture.loop, HOUR_MS - 600 * SECOND_MS);
    fixture_welcome(); /* the router was not heard for an hour */
    scene_expect(ask("worker::status", id), NULL, "\"exit_code\":0");
    fake_clock_pass(fixture.loop, 600 * SECOND_MS);
    fixture_welcome();
    scene_expect(ask("worker::status", id), "S504", id);
    scene_expect(scene_call("worker::list", "{}"), NULL, "[]");
    end();
}
END_TEST

/* The last 1,024 by their ends, whenever they began. */
START_TEST(test_last_1024)
{
    struct workers all = { 0 };
    struct worker *last = NULL;
    unsigned count = 0;

    ck_assert_int_eq(loop_new(&all.loop), 0);
    list_init(&all.all);
    for (unsigned i = 0; i < WORKERS_EXITED_MAX + 2; i++) {
        struct worker *worker = calloc(1, sizeof(*worker));

        ck_assert_ptr_nonnull(worker);
        *worker = (struct worker){ .workers = &all,
                                   .state = i ? WORKER_EXITED : WORKER_ENDING,
                                   .log = { .fd = -1 },
                                   .folder = { .lock_fd = -1 } };
        (void)snprintf(worker->id, sizeof(worker->id), "%u", i);
        list_init(&worker->stops);
        list_append(&all.all, &worker->node);
        if (i == 0)
            last = worker; /* began first, ends last */
        else
            workers_remember(worker);
        fake_clock_advance(1);
        ck_assert_int_eq(loop_turn(all.loop, 0), 0);
    }
    last->state = WORKER_EXITED;
    workers_remember(last);
    ck_assert_uint_eq(all.exited_count, WORKERS_EXITED_MAX);
    LIST_FOREACH(node, &all.all)
    {
        struct worker *worker = LIST_ENTRY(node, struct worker, node);

        ck_assert_str_ne(worker->id, "1");
        count += worker == last;
        workers_forget(worker);
    }
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(all.exited_count, 0);
    loop_free(all.loop);
    fake_clock_reset();
}
END_TEST

/* The script's beginning is told when the VM is being ended already. */
START_TEST(test_stop_crosses_the_beginning)
{
    struct guest_call *script;
    struct machine *machine;
    uint64_t starting, stopping;
    char *list, id[37];

    begin("");
    starting = start();
    machine = fake_machine(0);
    script = fake_guest_call(machine->guest, GUEST_exec);
    list = scene_answer(scene_call("worker::list", "{}"));
    (void)snprintf(id, sizeof(id), "%.36s", strstr(list, "\"vm_id\":\"") + 9);
    free(list);
    machine->guest->ignores_poweroff = true;
    stopping = ask("worker::stop", id);
    (void)fake_guest_call(machine->guest, GUEST_poweroff);
    tell_head(machine, script);
    guest_call_data(machine->guest, script, 1, "late\n", 5);
    scene_pass(SECOND_MS);
    scene_expect(starting, "S300", "was stopped");
    scene_expect(stopping, NULL, "\"stopped\":true");
    scene_expect(ask("worker::status", id), "S504", id);
    end();
}
END_TEST

/* What was not synced is not prepared, however well the scripts ended. */
START_TEST(test_lost_before_the_sync)
{
    struct machine *machine;
    uint64_t call;

    begin("  setup: make\n");
    call = prepare();
    machine = fake_machine(0);
    script_exits(machine, 0);
    (void)fake_guest_call(machine->guest, GUEST_sync);
    fake_machine_die(machine, "killed by somebody", "");
    scene_expect(call, "S300", "killed by somebody");

    call = prepare();
    machine = fake_machine(1);
    script_exits(machine, 0);
    guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_sync), "S216",
                     "the disk is broken", false);
    scene_pass(SECOND_MS);
    scene_expect(call, "S300", "the disk is broken");

    call = prepare();
    machine = fake_machine(2);
    script_exits(machine, 0);
    guest_call_reply(machine->guest, fake_guest_call(machine->guest, GUEST_sync),
                     &(struct guest_empty){ 0 });
    scene_pass(SECOND_MS);
    scene_expect(call, NULL, "\"cached\":false");
    scene_expect(prepare(), NULL, "\"cached\":true");
    end();
}
END_TEST

/* One second for both scripts together; the second one's kill is not confirmed. */
START_TEST(test_deadline_of_both)
{
    struct machine *machine;
    uint64_t call;

    begin("  setup: make\n  install: more\n");
    call = scene_call("worker::prepare",
                      "{\"source\":{\"host_path\":\"%s/source\"},\"state_key\":\"k\","
                      "\"timeout_ms\":1000}",
                      fixture.directory);
    machine = fake_machine(0);
    (void)fake_guest_call(machine->guest, GUEST_exec);
    scene_pass(600);
    script_exits(machine, 0);
    guest_call_data(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 1, "half\n",
                    5);
    scene_pass(600);
    ck_assert(fake_guest_call(machine->guest, GUEST_exec)->cancelled);
    scene_pass(WORKER_SCRIPT_KILL_MS + SECOND_MS);
    scene_expect(call, "S506", "install passed the timeout of 1000 ms");
    end();
}
END_TEST

UNIT_MAIN("workers", test_back_off, test_steady_run, test_wall_clock_jumps,
          test_forgotten_after_an_hour, test_last_1024, test_stop_crosses_the_beginning,
          test_lost_before_the_sync, test_deadline_of_both)
