/* test_supervise.c - managed processes: start, restart, retirement, and what they say. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fixture.h"
#include "log.h"
#include "program.h"
#include "supervise.h"
#include "unit.h"

static const struct supervise_timing quick = { .backoff_min_ms = 10,
                                               .backoff_max_ms = 40,
                                               .stop_ms = 150 };

struct scene {
    struct fixture fixture;
    struct supervise *supervise;
    bool stopped;
    FILE *log;
};

/* Our log, and so what the processes say, goes into a file. */
static void capture_log(struct scene *scene)
{
    scene->log = tmpfile();
    ck_assert_ptr_nonnull(scene->log);
    ck_assert_int_ge(dup2(fileno(scene->log), STDERR_FILENO), 0);
    log_init("test", LOG_FORMAT_KEY_VALUE, LOG_DEBUG);
}

/* How many lines of the log hold TEXT. */
static unsigned logged(struct scene *scene, const char *text)
{
    char line[8192];
    unsigned count = 0;

    rewind(scene->log);
    while (fgets(line, sizeof(line), scene->log))
        count += strstr(line, text) != NULL;
    return count;
}

/* SCRIPT for /bin/sh, without a single quote, is the command of the adapter `mock`. */
static const char *settings_of(const char *name, const char *script)
{
    static char text[2048];

    (void)snprintf(text, sizeof(text), "  adapter: %s\n  command: [/bin/sh, -c, '%s']\n", name,
                   script);
    return text;
}

static void scene_open(struct scene *scene, const char *settings)
{
    *scene = (struct scene){ 0 };
    capture_log(scene);
    fixture_open(&scene->fixture, settings, NULL);
    ck_assert_int_eq(supervise_new(&scene->fixture.router, fixture_url(&scene->fixture), &quick,
                                   &scene->supervise),
                     0);
    supervise_apply(scene->supervise);
}

static void apply(struct scene *scene, const char *settings)
{
    fixture_reload(&scene->fixture, settings);
    supervise_apply(scene->supervise);
}

static void on_stopped(void *ctx)
{
    ((struct scene *)ctx)->stopped = true;
}

static void scene_close(struct scene *scene)
{
    supervise_stop(scene->supervise, on_stopped, scene);
    ck_assert(!scene->stopped); /* never from inside */
    TURN_UNTIL(scene->fixture.loop, scene->stopped);
    supervise_free(scene->supervise);
    fixture_close(&scene->fixture);
    ck_assert_int_eq(fclose(scene->log), 0);
}

START_TEST(test_environment)
{
    struct scene scene;
    char router[128], config[128];

    scene_open(&scene,
               settings_of("mock", "echo at $SANDBOX_ROUTER; echo with $SANDBOX_CONFIG >&2;"
                                   " read nothing; echo end $?; exec sleep 60"));
    TURN_UNTIL(scene.fixture.loop, logged(&scene, "end 1") == 1);
    (void)snprintf(router, sizeof(router), "line=\"at %s\"", fixture_url(&scene.fixture));
    (void)snprintf(config, sizeof(config), "line=\"with %s\"", scene.fixture.config);
    ck_assert_uint_eq(logged(&scene, router), 1);
    ck_assert_uint_eq(logged(&scene, config), 1);
    scene_close(&scene);
}
END_TEST

/* What a caller is told of an adapter that is away, by what keeps it away. */
START_TEST(test_callers_are_told_why)
{
    static const struct {
        const char *settings, *says;
    } rows[] = {
        { "  adapter: no-such-program-anywhere\n",
          "adapter no-such-program-anywhere is not connected: no program of this name was "
          "found "
          "beside the router or on PATH" },
        { "  adapter: mock\n  command: [/nonexistent/adapter, --token, hush]\n",
          "adapter mock is not connected: /nonexistent/adapter cannot be started: No such "
          "file" },
        { "  adapter: mock\n  command: [/etc/passwd]\n",
          "adapter mock is not connected: /etc/passwd cannot be started: Permission denied" },
        { "  adapter: mock\n  command: [/bin/sh, -c, 'exit 3', hush]\n",
          "adapter mock is not connected: its process ended with exit code 3" },
        { "  adapter: mock\n  command: [/bin/sh, -c, 'kill -9 $$', hush]\n",
          "adapter mock is not connected: its process was ended by signal 9 (Killed)" },
        { "  adapter: mock\n  command: [/bin/sleep, '60']\n",
          "adapter mock is not connected: its process was started and has not said hello yet" },
        { "  adapter: mock\n  managed: false\n", "adapter mock is not connected\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct scene scene;
        struct router *router = &scene.fixture.router;
        struct peer caller;
        struct received *error;

        scene_open(&scene, rows[i].settings);
        TURN_UNTIL(scene.fixture.loop, !strstr(rows[i].settings, "/bin/sh") ||
                                           router->metrics.adapter_restarts > 0);
        peer_as_caller(&caller, &scene.fixture);
        peer_call(&caller, 1, "sandbox::list", "{}");
        error = peer_take(&caller, ENVELOPE_ERROR);
        ck_assert_msg(memmem(error->envelope.body.data, error->envelope.body.size, rows[i].says,
                             strlen(rows[i].says)) != NULL,
                      "%s: %.*s", rows[i].settings, (int)error->envelope.body.size,
                      error->envelope.body.data);
        ck_assert_ptr_null(
            memmem(error->envelope.body.data, error->envelope.body.size, "hush", 4));
        free(error);
        peer_close(&caller);
        scene_close(&scene);
    }
}
END_TEST

START_TEST(test_restarts)
{
    struct scene scene;

    scene_open(&scene, settings_of("mock", "exit 3"));
    TURN_UNTIL(scene.fixture.loop, scene.fixture.router.metrics.adapter_restarts >= 4);
    ck_assert_uint_ge(logged(&scene, "exit_code=3"), 4);
    scene_close(&scene);

    scene_open(&scene, "  adapter: mock\n  command: [/nonexistent/adapter]\n");
    TURN_UNTIL(scene.fixture.loop, scene.fixture.router.metrics.adapter_restarts >= 3);
    ck_assert_uint_ge(logged(&scene, "adapter_start_failed"), 3);
    scene_close(&scene);
}
END_TEST

START_TEST(test_not_managed)
{
    struct scene scene;

    scene_open(&scene, "  adapter: mock\n  managed: false\n  command: [/bin/false]\n");
    turn_for(scene.fixture.loop, 30);
    ck_assert_uint_eq(logged(&scene, "adapter_started"), 0);
    apply(&scene, ""); /* none configured */
    apply(&scene, "  adapter: no-such-program-anywhere\n");
    ck_assert_uint_eq(logged(&scene, "adapter_program_missing"), 1);
    apply(&scene, "  adapter: no-such-program-anywhere\n"); /* said once */
    ck_assert_uint_eq(logged(&scene, "adapter_program_missing"), 1);
    scene_close(&scene);
}
END_TEST

/* The end is asked for, then forced. */
START_TEST(test_stubborn)
{
    struct scene scene;

    scene_open(&scene, settings_of("mock", "trap : TERM; echo up;"
                                           " while :; do sleep 1; done"));
    TURN_UNTIL(scene.fixture.loop, logged(&scene, "line=\"up\"") == 1);
    apply(&scene, "");
    TURN_UNTIL(scene.fixture.loop, logged(&scene, "adapter_exited") == 1);
    ck_assert_uint_eq(logged(&scene, "adapter_killed"), 1);
    ck_assert_uint_eq(logged(&scene, "signal=9"), 1);
    scene_close(&scene);
}
END_TEST

/* After a swap the old one lives until its last call has ended. */
START_TEST(test_retirement)
{
    struct scene scene;
    struct peer adapter, caller;
    uint64_t id;

    scene_open(&scene, settings_of("mock", "exec sleep 60"));
    peer_as_adapter(&adapter, &scene.fixture, "mock"); /* speaks for that process */
    peer_as_caller(&caller, &scene.fixture);
    peer_call(&caller, 1, "sandbox::exec", "{}");
    id = peer_expect_call(&adapter, "exec");
    apply(&scene, settings_of("other", "exec sleep 61"));
    ck_assert_uint_eq(logged(&scene, "adapter_started"), 2);
    turn_for(scene.fixture.loop, 50);
    ck_assert_uint_eq(logged(&scene, "adapter_exited"), 0);

    /* There and back: it was never stopped. */
    apply(&scene, settings_of("mock", "exec sleep 60"));
    TURN_UNTIL(scene.fixture.loop, logged(&scene, "adapter_exited") == 1); /* of other */
    ck_assert_uint_eq(logged(&scene, "adapter_started"), 2);

    apply(&scene, settings_of("other", "exec sleep 61"));
    peer_answer(&adapter, ENVELOPE_REPLY, id, "{}");
    peer_expect_answer(&caller, ENVELOPE_REPLY, 1, "{}");
    TURN_UNTIL(scene.fixture.loop, logged(&scene, "adapter_exited adapter=\"mock\"") == 1);
    ck_assert_uint_eq(logged(&scene, "adapter_killed"), 0);
    peer_close(&adapter);
    peer_close(&caller);
    scene_close(&scene);
}
END_TEST

START_TEST(test_output_is_bounded)
{
    struct scene scene;

    scene_open(&scene,
               settings_of("mock", "i=0; while [ $i -lt 1000 ]; do echo line $i; "
                                   "i=$((i+1)); done; printf %09000d 7; echo; sleep 1.1; "
                                   "printf \"\\001\\\\n\"; echo unfinished; printf tail"));
    TURN_UNTIL(scene.fixture.loop, logged(&scene, "line=\"tail\"") >= 1);
    ck_assert_uint_ge(logged(&scene, "line=\"line "), 1);
    ck_assert_uint_ge(logged(&scene, "adapter_log_suppressed"), 1);
    ck_assert_uint_lt(logged(&scene, "line=\"line "), 1000);
    scene_close(&scene);
}
END_TEST

START_TEST(test_program_find)
{
    struct router_settings settings = { .adapter = "sh" };
    char *command[] = { "/opt/x", "-v" };
    char **argv;

    ck_assert_int_eq(program_find(&settings, &argv), 0); /* on PATH */
    ck_assert_ptr_nonnull(argv);
    ck_assert_ptr_nonnull(strstr(argv[0], "/sh"));
    ck_assert_ptr_null(argv[1]);
    program_free(argv);
    settings.adapter = "unit-router.supervise"; /* beside ourselves */
    ck_assert_int_eq(program_find(&settings, &argv), 0);
    ck_assert_ptr_nonnull(argv);
    program_free(argv);
    settings.adapter = "../bin/sh"; /* no name of a program */
    ck_assert_int_eq(program_find(&settings, &argv), 0);
    ck_assert_ptr_null(argv);
    settings.command = (struct text_list){ .count = 2, .items = command };
    ck_assert_int_eq(program_find(&settings, &argv), 0);
    ck_assert_str_eq(argv[0], "/opt/x");
    ck_assert_str_eq(argv[1], "-v");
    ck_assert_ptr_null(argv[2]);
    ck_assert(program_equal(argv, argv));
    ck_assert(!program_equal(argv, argv + 1));
    ck_assert(!program_equal(argv, NULL));
    program_free(argv);
}
END_TEST

UNIT_MAIN("router.supervise", test_environment, test_callers_are_told_why, test_restarts,
          test_not_managed, test_stubborn, test_retirement, test_output_is_bounded,
          test_program_find)
