/* test_fs.c - the operations that are one question and one answer (contract 4.4, 8). */
#include <stdio.h>
#include <string.h>

#include "agent_link.h"
#include "scene.h"
#include "unit.h"

static struct machine *machine;
static char id[37];

static void open_one(void)
{
    scene_open("");
    machine = scene_create("", id);
}

static uint64_t fs(const char *operation, const char *members)
{
    return scene_call(operation, "{\"sandbox_id\":\"%s\"%s}", id, members);
}

START_TEST(test_what_the_guest_is_asked_and_what_comes_back)
{
    struct fs_entry entries[] = {
        { .name = "a", .size = 3, .mode = "0644", .mtime = 5 },
        { .name = "b\ufffd",
          .is_dir = true,
          .mode = "0755",
          .has_name_b64 = true,
          .name_b64 = "Yv8=" },
    };
    struct fs_ls_reply reply = { .entries = { .count = 2, .items = entries } };
    struct guest_call *call;
    uint64_t answer;

    open_one();
    answer = fs("fs::ls", ",\"path\":\"/dir\"");
    call = fake_guest_call(machine->guest, GUEST_fs_ls);
    ck_assert_str_eq(((struct fs_ls_request *)call->request)->path, "/dir");
    ck_assert_uint_eq(machine->wants, 1); /* the back end knows that it is spoken to */
    guest_call_reply(machine->guest, call, &reply);
    fixture_expect_reply(answer,
                         "{\"entries\":[{\"name\":\"a\",\"is_dir\":false,\"size\":3,\"mode\":"
                         "\"0644\",\"mtime\":5,\"is_symlink\":false},{\"name\":\"b\ufffd\","
                         "\"is_dir\":true,\"size\":0,\"mode\":\"0755\",\"mtime\":0,"
                         "\"is_symlink\":false,\"name_b64\":\"Yv8=\"}]}");
    answer = fs("fs::chmod", ",\"path\":\"/f\",\"mode\":\"600\",\"uid\":7");
    call = fake_guest_call(machine->guest, GUEST_fs_chmod);
    ck_assert(((struct fs_chmod_request *)call->request)->has_uid);
    ck_assert(!((struct fs_chmod_request *)call->request)->has_gid);
    guest_call_reply(machine->guest, call, &(struct fs_chmod_reply){ .updated = 1 });
    fixture_expect_reply(answer, "{\"updated\":1}");
    scene_close();
}
END_TEST

START_TEST(test_every_operation_goes_to_its_own)
{
    static const struct {
        const char *name;
        enum guest_operation_id operation;
        const char *members;
    } rows[] = {
        { "fs::stat", GUEST_fs_stat, ",\"path\":\"/q\"" },
        { "fs::mkdir", GUEST_fs_mkdir, ",\"path\":\"/q\"" },
        { "fs::rm", GUEST_fs_rm, ",\"path\":\"/q\"" },
        { "fs::mv", GUEST_fs_mv, ",\"src\":\"/q\",\"dst\":\"/r\"" },
        { "fs::grep", GUEST_fs_grep, ",\"path\":\"/q\",\"pattern\":\"a\"" },
        { "fs::sed", GUEST_fs_sed, ",\"path\":\"/q\",\"pattern\":\"a\",\"replacement\":\"\"" },
        { "fs::sed", GUEST_fs_sed,
          ",\"files\":[\"/q\"],\"pattern\":\"a\",\"replacement\":\"\"" },
        { "fs::read", GUEST_fs_read, ",\"path\":\"/q\"" },
        { "fs::write", GUEST_fs_write, ",\"path\":\"/q\",\"content\":\"\"" },
    };

    open_one();
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t answer = fs(rows[i].name, rows[i].members);

        guest_call_error(machine->guest, fake_guest_call(machine->guest, rows[i].operation),
                         "S215", "/q: permission denied", false);
        scene_expect(answer, "S215", "/q: permission denied");
    }
    scene_close();
}
END_TEST

START_TEST(test_codes_of_the_guest)
{
    static const struct {
        const char *guest, *code, *text;
    } rows[] = {
        { "S210", "S210", "\"message\":\"why\"" }, { "S219", "S219", "\"message\":\"why\"" },
        { "S300", "S216", "S300: why" },           { "S299", "S216", "S299: why" },
        { "S001", "S216", "S001: why" },           { "S301", "S216", "S301: why" },
        { "nonsense", "S216", "nonsense: why" },
    };

    open_one();
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t answer = fs("fs::stat", ",\"path\":\"/q\"");

        guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_stat),
                         rows[i].guest, "why", false);
        scene_expect(answer, rows[i].code, rows[i].text);
    }
    scene_close();
}
END_TEST

START_TEST(test_fix_parents)
{
    uint64_t answer;

    open_one();
    answer = fs("fs::mkdir", ",\"path\":\"/a/b\"");
    guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_mkdir), "S211",
                     "/a", true);
    scene_expect(answer, "S211", "\"fix\":{\"parents\":true},\"fix_note\":\"");
    answer = fs("fs::mkdir", ",\"path\":\"/a/b\"");
    guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_mkdir), "S213",
                     "/a", true);
    scene_expect(answer, "S213", "\"fix\":null");
    answer = fs("fs::stat", ",\"path\":\"/a/b\"");
    guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_stat), "S211",
                     "/a", true);
    scene_expect(answer, "S211", "\"fix\":null");
    scene_close();
}
END_TEST

START_TEST(test_order_of_checks)
{
    open_one();
    scene_expect(scene_call("fs::ls", "{\"path\":\"/\"}"), "S001", "sandbox_id");
    scene_expect(scene_call("fs::ls", "{\"sandbox_id\":\"x\",\"path\":\"/\"}"), "S001",
                 "\\\"x\\\"");
    scene_expect(scene_call("fs::sed",
                            "{\"sandbox_id\":\"01234567-89ab-4def-8123-456789abcdef\","
                            "\"path\":\"/\",\"files\":[\"/a\"],\"pattern\":\"\","
                            "\"replacement\":\"\"}"),
                 "S210", "both");
    scene_expect(scene_call("fs::sed",
                            "{\"sandbox_id\":\"01234567-89ab-4def-8123-456789abcdef\","
                            "\"files\":[\"/a\"],\"pattern\":\"\",\"replacement\":\"\"}"),
                 "S002", "01234567");
    scene_expect(scene_call("fs::sed", "{\"sandbox_id\":\"?\",\"pattern\":\"\","
                                       "\"replacement\":\"\"}"),
                 "S001", "sandbox_id");
    scene_close();
}
END_TEST

START_TEST(test_unreachable)
{
    uint64_t answer;

    open_one();
    machine->guest->silent = true;
    answer = fs("fs::stat", ",\"path\":\"/q\"");
    scene_pass(16500);
    scene_expect(answer, "S216", "/q: shell client error: ");
    scene_expect(fs("fs::stat", ",\"path\":\"/q\""), "S216", "/q: shell client error: ");
    machine->guest->silent = false;
    scene_pass(5500);
    scene_await_status(id, "ready");
    answer = fs("fs::rm", ",\"path\":\"/q\"");
    guest_call_reply(machine->guest, fake_guest_call(machine->guest, GUEST_fs_rm),
                     &(struct fs_rm_reply){ .removed = true });
    fixture_expect_reply(answer, "{\"removed\":true}");
    scene_close();
}
END_TEST

/* Whoever leaves is answered at once; what the guest was asked for goes on, but for a search.
 */
START_TEST(test_cancelled_grep_stops_others_do_not)
{
    struct guest_call *grep, *rm;
    uint64_t answers[2];

    open_one();
    answers[0] = fs("fs::grep", ",\"path\":\"/\",\"pattern\":\"a\"");
    answers[1] = fs("fs::rm", ",\"path\":\"/x\"");
    grep = fake_guest_call(machine->guest, GUEST_fs_grep);
    rm = fake_guest_call(machine->guest, GUEST_fs_rm);
    scene_cancel(answers[1]);
    scene_cancel(answers[0]);
    scene_expect(answers[1], "S216", "/x: its caller is gone");
    scene_expect(answers[0], "S216", "/: its caller is gone");
    TURN_UNTIL(fixture.loop, grep->cancelled);
    ck_assert(!rm->cancelled);
    guest_call_reply(machine->guest, rm, &(struct fs_rm_reply){ .removed = true });
    guest_call_reply(machine->guest, grep, &(struct fs_grep_reply){ .truncated = true });
    answers[0] = fs("fs::stat", ",\"path\":\"/q\"");
    guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_stat), "S211",
                     "/q", false);
    scene_expect(answers[0], "S211", "/q");
    scene_close();
}
END_TEST

/* What is cancelled while the sandbox boots is carried out, but for a search. */
START_TEST(test_cancelled_ahead_of_the_guest)
{
    _cleanup_free_ char *list = NULL;
    uint64_t answers[3], create;

    scene_open("");
    fake_machines.sends_nothing = true;
    create = scene_call("create", "{\"image\":\"img\"}");
    machine = fake_machine(0);
    list = scene_list();
    (void)snprintf(id, sizeof(id), "%.36s", strstr(list, "\"sandbox_id\":\"") + 14);
    answers[0] = fs("fs::rm", ",\"path\":\"/x\"");
    answers[1] = fs("fs::write", ",\"path\":\"/y\",\"content\":\"abc\"");
    answers[2] = fs("fs::grep", ",\"path\":\"/z\",\"pattern\":\"a\"");
    scene_heard();
    for (int i = 0; i < 3; i++)
        scene_cancel(answers[i]);
    scene_expect(answers[2], "S216", "/z: its caller is gone");
    fake_guest_hello(machine->guest, 1);
    scene_expect(create, NULL, id);
    scene_expect(answers[0], "S216", "/x: its caller is gone");
    scene_expect(answers[1], "S216", "/y: its caller is gone");
    guest_call_reply(machine->guest, fake_guest_call(machine->guest, GUEST_fs_rm),
                     &(struct fs_rm_reply){ .removed = true });
    TURN_UNTIL(fixture.loop, fake_guest_call(machine->guest, GUEST_fs_write)->input_ended);
    ck_assert_ptr_null(fake_guest_has_call(machine->guest, GUEST_fs_grep));
    scene_close();
}
END_TEST

/* A guest that answers PINGs and no call. Whoever leaves holds nothing, the sandbox refuses
 * more than its limit by name, and a stop ends them all. */
START_TEST(test_never_answered)
{
    uint64_t waiting, answer;

    open_one();
    for (unsigned i = 1; i < AGENT_LINK_CALLS_MAX; i++) {
        answer = fs(i % 2 ? "fs::stat" : "fs::read", ",\"path\":\"/q\"");
        scene_heard();
        scene_cancel(answer);
        scene_expect(answer, "S216", "/q: its caller is gone");
    }
    waiting = fs("fs::ls", ",\"path\":\"/dir\"");
    scene_expect(fs("fs::stat", ",\"path\":\"/one-more\""), "S216",
                 "4096 operations of this sandbox have not ended");
    ck_assert(scene_unanswered(waiting));
    answer = scene_call("stop", "{\"sandbox_id\":\"%s\"}", id);
    scene_expect(waiting, "S216", "/dir: shell client error: ");
    scene_expect(answer, NULL, "\"stopped\":true");
    scene_close();
}
END_TEST

/* The idle clock is the deadline of what has none: only a beginning and an end wind it. */
START_TEST(test_never_answered_ends_with_the_idle_sandbox)
{
    uint64_t answer;

    scene_open("");
    machine = scene_create(",\"idle_timeout_secs\":60", id);
    answer = fs("fs::ls", ",\"path\":\"/dir\"");
    (void)fake_guest_call(machine->guest, GUEST_fs_ls);
    scene_pass(59000);
    ck_assert(scene_unanswered(answer));
    scene_pass(15000);
    scene_expect(answer, "S216", "/dir: shell client error: ");
    scene_close();
}
END_TEST

/* Bytes that came with the request are its own until the guest has them. */
START_TEST(test_cancelled_write)
{
    enum { SIZE = 600 * 1024 };
    char *members = malloc(SIZE + 64);
    struct guest_call *call;
    uint64_t answer;

    ck_assert_ptr_nonnull(members);
    strcpy(members, ",\"path\":\"/big\",\"content\":\"");
    memset(members + strlen(members), 'x', SIZE);
    strcpy(members + strlen(",\"path\":\"/big\",\"content\":\"") + SIZE, "\"");
    open_one();
    machine->guest->gives_no_credit = true;
    answer = fs("fs::write", members);
    call = fake_guest_call(machine->guest, GUEST_fs_write);
    scene_cancel(answer);
    scene_heard();
    ck_assert(scene_unanswered(answer));
    fake_guest_frame(
        machine->guest,
        &(struct agent_frame){ .kind = AGENT_FRAME_CREDIT, .id = call->id, .credit = SIZE });
    scene_expect(answer, "S216", "/big: its caller is gone");
    TURN_UNTIL(fixture.loop, call->input_ended);
    ck_assert_uint_eq(call->input.size, SIZE);
    ck_assert(!call->cancelled && !call->input_abort);
    guest_call_reply(machine->guest, call,
                     &(struct guest_fs_write_reply){ .bytes_written = SIZE });
    free(members);
    scene_close();
}
END_TEST

START_TEST(test_list_that_fits_in_no_message)
{
    enum { COUNT = 5000 };
    struct fs_entry *entries = calloc(COUNT, sizeof(*entries));
    struct fs_ls_reply reply = { .entries = { .count = COUNT, .items = entries } };
    char name[601];
    uint64_t answer;

    memset(name, 1, sizeof(name) - 1); /* six bytes each in JSON */
    name[sizeof(name) - 1] = 0;
    for (unsigned i = 0; i < COUNT; i++)
        entries[i] = (struct fs_entry){ .name = name, .mode = "0644" };
    open_one();
    answer = fs("fs::ls", ",\"path\":\"/big\"");
    guest_call_reply(machine->guest, fake_guest_call(machine->guest, GUEST_fs_ls), &reply);
    scene_expect(answer, "S216", "/big has 5000 entries");
    free(entries);
    scene_close();
}
END_TEST

START_TEST(test_hundreds_at_once)
{
    enum { COUNT = 500 };
    uint64_t answers[COUNT];

    open_one();
    for (unsigned i = 0; i < COUNT; i++)
        answers[i] = fs("fs::stat", ",\"path\":\"/q\"");
    for (unsigned i = 0; i < COUNT; i++)
        guest_call_error(machine->guest, fake_guest_call(machine->guest, GUEST_fs_stat), "S211",
                         "/q", false);
    for (unsigned i = 0; i < COUNT; i++)
        scene_expect(answers[i], "S211", "/q");
    scene_close();
}
END_TEST

UNIT_MAIN("fs", test_what_the_guest_is_asked_and_what_comes_back,
          test_every_operation_goes_to_its_own, test_codes_of_the_guest, test_fix_parents,
          test_order_of_checks, test_unreachable, test_cancelled_grep_stops_others_do_not,
          test_cancelled_ahead_of_the_guest, test_never_answered,
          test_never_answered_ends_with_the_idle_sandbox, test_cancelled_write,
          test_list_that_fits_in_no_message, test_hundreds_at_once)
