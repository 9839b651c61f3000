/* test_adapter.c - start, reload and shutdown of the process. */
#include "fixture.h"
#include "serve.h"
#include "unit.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static uint32_t max_cpus(void)
{
    return adapter_settings(fixture.adapter)->max_cpus;
}

START_TEST(test_reload_on_hangup)
{
    fixture_open("    max_cpus: 1\n");
    fixture_write_settings("    max_cpus: 2\n");
    ck_assert_int_eq(raise(SIGHUP), 0);
    TURN_UNTIL(fixture.loop, max_cpus() == 2 && fixture.reloads > 0);
    fixture_close();
}
END_TEST

START_TEST(test_reload_on_write)
{
    fixture_open("    max_cpus: 1\n");
    fixture_write_settings("    max_cpus: 3\n");
    TURN_UNTIL(fixture.loop, max_cpus() == 3);
    fixture_close();
}
END_TEST

START_TEST(test_reload_on_rename)
{
    char old[96], new[128];

    fixture_open("    max_cpus: 1\n");
    (void)snprintf(old, sizeof(old), "%s", fixture.settings_path);
    (void)snprintf(new, sizeof(new), "%s/new.yaml", fixture.directory);
    (void)snprintf(fixture.settings_path, sizeof(fixture.settings_path), "%.90s", new);
    fixture_write_settings("    max_cpus: 4\n");
    ck_assert_int_eq(rename(new, old), 0);
    TURN_UNTIL(fixture.loop, max_cpus() == 4);
    fixture_close();
}
END_TEST

START_TEST(test_reload_through_a_link)
{
    char command[512], link[128];

    fixture_prepare("    max_cpus: 1\n");
    (void)snprintf(command, sizeof(command),
                   "cd %s && mkdir etc && ln -s ../settings.yaml etc/settings.yaml",
                   fixture.directory);
    ck_assert_int_eq(system(command), 0);
    (void)snprintf(link, sizeof(link), "%s/etc/settings.yaml", fixture.directory);
    (void)snprintf(fixture.settings_path, sizeof(fixture.settings_path), "%.90s", link);
    fixture_start_adapter();
    fixture_write_settings("    max_cpus: 5\n");
    TURN_UNTIL(fixture.loop, max_cpus() == 5);
    fixture_close();
}
END_TEST

START_TEST(test_bad_settings_change_nothing)
{
    fixture_open("    max_cpus: 1\n");
    fixture_write_settings("    max_cpus: many\n");
    adapter_reload(fixture.adapter);
    fixture_write_settings("    no_such_key: 1\n");
    adapter_reload(fixture.adapter);
    ck_assert_uint_eq(max_cpus(), 1);
    ck_assert_uint_eq(fixture.reloads, 0);
    fixture_close();
}
END_TEST

START_TEST(test_a_call_keeps_its_settings)
{
    fixture.own_operation = fixture_keep;
    fixture_open("    max_cpus: 1\n    custom_images: {a: 'rootfs:/a'}\n");
    fixture_call(1, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    fixture_write_settings("    max_cpus: 2\n");
    adapter_reload(fixture.adapter);
    fixture_call(2, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 2);
    ck_assert_uint_eq(request_settings(fixture.requests[0])->max_cpus, 1);
    ck_assert_str_eq(request_settings(fixture.requests[0])->custom_images.items[0].value,
                     "rootfs:/a");
    ck_assert_uint_eq(request_settings(fixture.requests[1])->max_cpus, 2);
    fixture_close();
}
END_TEST

START_TEST(test_start_fails_with_a_reason)
{
    static const char *const texts[] = { "    max_cpus: -1\n", "    cpus: 1\n" };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        char error[ADAPTER_ERROR_MAX];
        struct adapter *adapter = NULL;

        fixture_prepare(texts[i]);
        ck_assert_int_lt(
            adapter_new(fixture.loop,
                        &(struct adapter_options){ .config_path = fixture.settings_path },
                        &adapter, error),
            0);
        ck_assert_msg(strstr(error, fixture.settings_path) && strstr(error, "cpus"), "%s",
                      error);
        fixture_close();
    }
}
END_TEST

START_TEST(test_folder_that_cannot_be)
{
    char error[ADAPTER_ERROR_MAX];
    struct adapter *adapter = NULL;
    char extra[128];
    FILE *file;

    fixture_prepare("");
    (void)snprintf(extra, sizeof(extra), "%s/cache", fixture.directory);
    file = fopen(extra, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_lt(
        adapter_new(fixture.loop,
                    &(struct adapter_options){ .config_path = fixture.settings_path }, &adapter,
                    error),
        0);
    ck_assert_msg(strstr(error, "cache_dir"), "%s", error);
    fixture_close();
}
END_TEST

START_TEST(test_terminate_answers_and_ends)
{
    fixture.own_operation = fixture_keep;
    fixture_open("");
    fixture_call(1, "test::hold", "{}");
    TURN_UNTIL(fixture.loop, fixture.request_count == 1);
    adapter_stop(fixture.adapter);
    ck_assert(adapter_stopping(fixture.adapter));
    fixture_reply(0, "\"last\"");
    ck_assert_int_eq(loop_run(fixture.loop), 0);
    turn_for(fixture.loop, 50);
    fixture_expect_reply(1, "\"last\"");
    fixture_close();
}
END_TEST

static struct request *arrived;

static bool hold_call(void *ctx, struct request *request, const char *operation)
{
    arrived = request;
    return true;
}

START_TEST(test_new_calls_are_refused_while_stopping)
{
    fixture.has_fault = true;
    fixture.fault.called = hold_call;
    fixture_open("");
    fixture_call(2, "create", "{\"image\":\"python\"}");
    TURN_UNTIL(fixture.loop, arrived);
    adapter_stop(fixture.adapter);
    fault_go_on(arrived);
    ck_assert_int_eq(loop_run(fixture.loop), 0);
    fixture_expect_error(2, "S300", "\"outcome\":\"never_ran\"");
    fixture_close();
}
END_TEST

START_TEST(test_signal_stops)
{
    fixture_open("");
    ck_assert_int_eq(raise(SIGTERM), 0);
    ck_assert_int_eq(loop_run(fixture.loop), 0);
    fixture_close();
}
END_TEST

START_TEST(test_stops_without_a_router)
{
    fixture_prepare("");
    fixture_start_adapter();
    turn_for(fixture.loop, 20);
    adapter_stop(fixture.adapter);
    ck_assert_int_eq(loop_run(fixture.loop), 0);
    fixture_close();
}
END_TEST

/* The command line. */

static int run(const char *const *arguments)
{
    char *argv[8] = { (char *)"/usr/bin/sandbox-test" };
    int argc = 1;

    for (; arguments[argc - 1]; argc++)
        argv[argc] = (char *)arguments[argc - 1];
    optind = 0; /* getopt begins anew */
    return adapter_main(argc, argv, &fixture_ops);
}

START_TEST(test_command_line)
{
    static const struct {
        const char *arguments[4];
        int code;
    } lines[] = {
        { { "--version" }, 0 },
        { { "--help" }, 0 },
        { { NULL }, 2 },
        { { "--no-such-option" }, 2 },
        { { "--config" }, 2 },
        { { "--config", "/nonexistent.yaml", "more" }, 2 },
        { { "--log-format", "xml" }, 2 },
        { { "--log-level", "loud" }, 2 },
        { { "--config", "/nonexistent.yaml" }, 1 },
        { { "--config=/nonexistent.yaml", "--log-format=json", "--log-level=error" }, 1 },
    };

    ck_assert_int_eq(unsetenv("SANDBOX_CONFIG"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        ck_assert_int_eq(run(lines[i].arguments), lines[i].code);
    ck_assert_int_eq(setenv("SANDBOX_CONFIG", "/nonexistent.yaml", 1), 0);
    ck_assert_int_eq(run((const char *const[]){ NULL }), 1);
}
END_TEST

START_TEST(test_second_signal_exits_at_once)
{
    fixture_open("");
    adapter_stop(fixture.adapter);
    ck_assert_int_eq(raise(SIGTERM), 0);
    turn_for(fixture.loop, 1000);
    ck_abort_msg("still here");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_reload_on_hangup,
        test_reload_on_write,
        test_reload_on_rename,
        test_reload_through_a_link,
        test_bad_settings_change_nothing,
        test_a_call_keeps_its_settings,
        test_start_fails_with_a_reason,
        test_folder_that_cannot_be,
        test_terminate_answers_and_ends,
        test_new_calls_are_refused_while_stopping,
        test_signal_stops,
        test_stops_without_a_router,
        test_command_line,
    };
    Suite *suite = suite_create("adapter");
    TCase *test_case = tcase_create("adapter");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, test_case);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(test_case, tests[i]);
    tcase_add_exit_test(test_case, test_second_signal_exits_at_once, 128 + SIGTERM);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
