/* test_run.c - run: its steps, and the step around an error (contract 6). */
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "unit.h"

static uint64_t run(const char *members)
{
    return scene_call("run", "{\"image\":\"img\"%s}", members);
}

static void written(struct machine *machine, const char *path, const char *content)
{
    struct guest_call *call = fake_guest_call(machine->guest, GUEST_fs_write);
    const struct fs_write_request *request = call->request;

    TURN_UNTIL(fixture.loop, call->input_ended);
    ck_assert_str_eq(request->path, path);
    ck_assert_str_eq(request->mode, "0644");
    ck_assert(request->parents);
    ck_assert_str_eq(buf_text(&call->input), content);
    guest_call_reply(machine->guest, call,
                     &(struct guest_fs_write_reply){ .bytes_written = call->input.size });
}

static void expect_argv(struct guest_call *call, const char *program, const char *file)
{
    const struct guest_exec *request = call->request;

    ck_assert_uint_eq(request->argv.count, 2);
    ck_assert_str_eq(request->argv.items[0], program);
    ck_assert_str_eq(request->argv.items[1], file);
}

START_TEST(test_steps)
{
    struct machine *machine;
    struct guest_call *call;
    uint64_t answer;

    scene_open("");
    answer = run(",\"lang\":\"py\",\"code\":\"print(1)\",\"files\":[{\"path\":\"/a\","
                 "\"content\":\"A\"},{\"path\":\"/d/b\",\"content\":\"\"}],"
                 "\"env\":{\"X\":\"1\"},\"stdin\":\"Zm9v\",\"timeout_ms\":777");
    machine = fake_machine(0);
    written(machine, "/a", "A");
    written(machine, "/d/b", "");
    written(machine, "/tmp/run.py", "print(1)");
    call = fake_guest_call(machine->guest, GUEST_exec);
    expect_argv(call, "python3", "/tmp/run.py");
    ck_assert_uint_eq(((struct guest_exec *)call->request)->timeout_ms, 777);
    ck_assert_str_eq(((struct guest_exec *)call->request)->env.items[0], "X=1");
    ck_assert_str_eq(machine->guest->configure.env.items[1], "X=1");
    TURN_UNTIL(fixture.loop, call->input_ended);
    ck_assert_str_eq(buf_text(&call->input), "foo");
    guest_call_data(machine->guest, call, 1, "1\n", 2);
    machine->guest->ignores_poweroff = true;
    guest_call_exit(machine->guest, call, 5);
    (void)fake_guest_call(machine->guest, GUEST_poweroff);
    ck_assert(scene_unanswered(answer));
    scene_pass(300);
    {
        _cleanup_free_ char *text = scene_answer(answer);

        ck_assert_int_eq(
            strncmp(text, "{\"stdout\":\"1\\n\",\"stderr\":\"\",\"exit_code\":5,", 41), 0);
        ck_assert_ptr_null(strstr(text, "sandbox_id"));
    }
    scene_close();
}
END_TEST

START_TEST(test_languages)
{
    static const char *const rows[][3] = {
        { "javascript", "node", "/tmp/run.js" },
        { "bash", "/bin/sh", "/tmp/run.sh" },
        { "Python", "Python", "/tmp/run.txt" },
        { "/usr/bin/perl -w", "/usr/bin/perl -w", "/tmp/run.txt" },
    };

    scene_open("");
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct machine *machine;
        struct guest_call *call;
        char members[128];
        uint64_t answer;

        (void)snprintf(members, sizeof(members), ",\"lang\":\"%s\",\"code\":\"\"", rows[i][0]);
        answer = run(members);
        machine = fake_machine(i);
        written(machine, rows[i][2], "");
        call = fake_guest_call(machine->guest, GUEST_exec);
        expect_argv(call, rows[i][1], rows[i][2]);
        guest_call_exit(machine->guest, call, 0);
        scene_pass(300);
        scene_expect(answer, NULL, "\"success\":true");
    }
    scene_close();
}
END_TEST

START_TEST(test_keep_sandbox)
{
    struct machine *machine;
    uint64_t answer;
    char wanted[64];

    scene_open("");
    answer = run(",\"lang\":\"sh\",\"code\":\"x\",\"keep_sandbox\":true");
    machine = fake_machine(0);
    written(machine, "/tmp/run.sh", "x");
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
    (void)snprintf(wanted, sizeof(wanted), "\"sandbox_id\":\"%s\"}", machine->spec.id);
    scene_expect(answer, NULL, wanted);
    ck_assert_uint_eq(fake_machines.live, 1);
    scene_close();
}
END_TEST

START_TEST(test_request_checks_are_plain)
{
    scene_open("");
    scene_expect(run(",\"lang\":\"\",\"code\":\"\""), "S001", "lang");
    scene_expect(run(",\"lang\":\"sh\",\"code\":\"\",\"stdin\":\"!\""), "S001", "stdin");
    scene_expect(run(",\"lang\":\"sh\",\"code\":\"\",\"env\":{\"1\":\"\"}"), "S001",
                 "\"fix\":null");
    ck_assert_uint_eq(fake_machines.count, 0);
    scene_close();
}
END_TEST

START_TEST(test_create_fails)
{
    uint64_t answer;

    scene_open("");
    answer = scene_call("run", "{\"image\":\"no\",\"lang\":\"sh\",\"code\":\"\"}");
    {
        _cleanup_free_ char *text = scene_answer(answer);

        ck_assert_ptr_nonnull(strstr(text, "\"code\":\"S100\""));
        ck_assert_ptr_nonnull(
            strstr(text, "\"message\":\"sandbox::run step `create` (sandbox ): "));
        ck_assert_ptr_nonnull(
            strstr(text, "\"fix\":{\"context\":\"during sandbox::run step `create`\","
                         "\"sandbox_id\":\"\",\"inner_code\":\"S100\"},\"fix_note\":null"));
    }
    scene_close();
}
END_TEST

START_TEST(test_write_fails)
{
    struct machine *machine;
    uint64_t answer;
    char wanted[160];

    scene_open("");
    answer = run(
        ",\"lang\":\"sh\",\"code\":\"\",\"files\":[{\"path\":\"rel\",\"content\":\"\"}]");
    machine = fake_machine(0);
    (void)snprintf(wanted, sizeof(wanted),
                   "sandbox::run step `fs::write (sibling file)` (sandbox %s): path rel",
                   machine->spec.id);
    guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_write), "S210",
                     "path rel is not absolute", false);
    scene_pass(300);
    scene_expect(answer, "S210", wanted);
    ck_assert_uint_eq(fake_machines.live, 0);
    scene_close();
}
END_TEST

START_TEST(test_exec_times_out_and_is_kept)
{
    struct machine *machine;
    struct guest_call *call;
    uint64_t answer;
    char id[37];

    scene_open("");
    answer = run(",\"lang\":\"sh\",\"code\":\"\",\"timeout_ms\":1000,\"keep_sandbox\":true");
    machine = fake_machine(0);
    (void)snprintf(id, sizeof(id), "%s", machine->spec.id);
    written(machine, "/tmp/run.sh", "");
    call = fake_guest_call(machine->guest, GUEST_exec);
    guest_call_data(machine->guest, call, 2, "late", 4);
    scene_pass(1500);
    guest_call_reply(machine->guest, call, &(struct guest_exec_reply){ .cancelled = true });
    {
        _cleanup_free_ char *text = scene_answer(answer);

        ck_assert_ptr_nonnull(strstr(text, "\"code\":\"S200\""));
        ck_assert_ptr_nonnull(strstr(text, "\"stderr\":\"late\""));
        ck_assert_ptr_nonnull(strstr(text, id));
    }
    ck_assert_uint_eq(fake_machines.live, 1);
    scene_close();
}
END_TEST

START_TEST(test_machine_dies_during_exec)
{
    struct machine *machine;
    uint64_t answer;

    scene_open("");
    answer = run(",\"lang\":\"sh\",\"code\":\"\"");
    machine = fake_machine(0);
    written(machine, "/tmp/run.sh", "");
    (void)fake_guest_call(machine->guest, GUEST_exec);
    fake_machine_die(machine, "oops", "");
    scene_expect(answer, "S300", "\"outcome\":\"may_have_run\"");
    scene_close();
}
END_TEST

START_TEST(test_cancel_stops_it_even_when_kept)
{
    static const enum guest_operation_id steps[] = { GUEST_fs_write, GUEST_exec };

    scene_open("");
    for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
        uint64_t answer = run(",\"lang\":\"sh\",\"code\":\"\",\"keep_sandbox\":true");
        struct machine *machine = fake_machine(i);
        struct guest_call *call;

        if (steps[i] == GUEST_exec)
            written(machine, "/tmp/run.sh", "");
        call = fake_guest_call(machine->guest, steps[i]);
        scene_cancel(answer);
        TURN_UNTIL(fixture.loop, call->cancelled);
        if (steps[i] == GUEST_exec)
            guest_call_reply(machine->guest, call,
                             &(struct guest_exec_reply){ .cancelled = true });
        scene_pass(300);
        free(scene_answer(answer));
        ck_assert_uint_eq(fake_machines.live, 0);
    }
    scene_close();
}
END_TEST

START_TEST(test_a_failed_stop_changes_nothing)
{
    struct machine *machine;
    uint64_t answer;

    scene_open("");
    answer = run(",\"lang\":\"sh\",\"code\":\"\"");
    machine = fake_machine(0);
    written(machine, "/tmp/run.sh", "");
    fake_machines.cannot_be_killed = true;
    guest_call_exit(machine->guest, fake_guest_call(machine->guest, GUEST_exec), 0);
    scene_pass(300);
    scene_expect(answer, NULL, "\"success\":true");
    scene_close();
}
END_TEST

UNIT_MAIN("run", test_steps, test_languages, test_keep_sandbox, test_request_checks_are_plain,
          test_create_fails, test_write_fails, test_exec_times_out_and_is_kept,
          test_machine_dies_during_exec, test_cancel_stops_it_even_when_kept,
          test_a_failed_stop_changes_nothing)
