/* test_serve.c - the conversation (docs/agent-protocol.md): greeting, streams of files, cancel,
 * and a host that breaks the rules. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent_client.h"
#include "codec.h"

static struct agent_client client;
static char root[64];
static char path[128];

static void start(void)
{
    (void)strcpy(root, "/tmp/agent-serve-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    agent_client_start_ready(&client, -1);
}

static void stop(void)
{
    char command[128];

    agent_client_stop(&client);
    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static char *at(const char *name)
{
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void put(const char *name, const void *data, size_t size)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0640);

    ck_assert_int_eq(write(fd, data, size), (ssize_t)size);
    ck_assert_int_eq(close(fd), 0);
}

static unsigned entries(void)
{
    char command[128];
    unsigned count;
    FILE *output;

    (void)snprintf(command, sizeof(command), "ls -A %s | wc -l", root);
    output = popen(command, "r");
    ck_assert_int_eq(fscanf(output, "%u", &count), 1);
    (void)pclose(output);
    return count;
}

static void ping(void)
{
    struct agent_frame frame;

    agent_client_send(&client, &(struct agent_frame){ .kind = AGENT_FRAME_PING, .id = 7 });
    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_PONG);
    ck_assert_uint_eq(frame.id, 7);
}

static uint64_t call_write(char *to, bool parents)
{
    const struct fs_write_request request = {
        .sandbox_id = (char *)(uintptr_t) "x",
        .path = to,
        .mode = (char *)(uintptr_t) "4751",
        .parents = parents,
    };

    return agent_client_call(&client, "fs::write", &type_fs_write_request, &request);
}

static uint64_t call_read(char *from)
{
    const struct fs_read_request request = {
        .sandbox_id = (char *)(uintptr_t) "x",
        .path = from,
    };

    return agent_client_call(&client, "fs::read", &type_fs_read_request, &request);
}

static void check_error(uint64_t id, const char *code)
{
    struct agent_answer answer;

    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_ERROR);
    ck_assert_str_eq(answer.code, code);
    agent_answer_done(&answer);
}

START_TEST(hello_names_the_operations)
{
    struct guest_hello hello;
    struct agent_client other;
    struct agent_frame frame;

    /* agent_client_start() has read it; its bytes are still there */
    agent_client_start(&other, -1);
    ck_assert_uint_gt(other.handed_out, 0);
    ck_assert_int_eq(agent_frame_decode(other.in.data + AGENT_FRAME_PREFIX_BYTES,
                                        other.handed_out - AGENT_FRAME_PREFIX_BYTES, &frame,
                                        &(const char *){ NULL }),
                     0);
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_hello, (const uint8_t *)frame.body.data,
                                          frame.body.size, &hello),
                     0);
    ck_assert_uint_eq(hello.protocol_major, 1);
    ck_assert_uint_eq(hello.operations.count, GUEST_MAX);
    ck_assert_str_eq(hello.operations.items[0], "exec");
    codec_free(&type_guest_hello, &hello);
    agent_client_stop(&other);
}
END_TEST

START_TEST(write_replaces_whole)
{
    struct guest_fs_write_reply reply;
    struct agent_answer answer;
    struct stat status;
    uint64_t id;

    put("f", "old and longer", 14);
    id = call_write(at("f"), false);
    agent_client_data(&client, id, 0, "ne", 2);
    agent_client_data(&client, id, 0, "w", 1);
    agent_client_end(&client, id, 0, NULL);
    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_fs_write_reply, answer.body.data,
                                          answer.body.size, &reply),
                     0);
    ck_assert_uint_eq(reply.bytes_written, 3);
    ck_assert_int_eq(stat(at("f"), &status), 0);
    ck_assert_int_eq(status.st_size, 3);
    ck_assert_uint_eq(status.st_mode & 07777, 04751);
    ck_assert_uint_eq(entries(), 1);
    agent_answer_done(&answer);
}
END_TEST

START_TEST(write_replaces_a_link_itself)
{
    struct agent_answer answer;
    struct stat status;
    uint64_t id;

    put("target", "t", 1);
    ck_assert_int_eq(symlink("target", at("l")), 0);
    id = call_write(at("l"), false);
    agent_client_end(&client, id, 0, NULL);
    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    agent_answer_done(&answer);
    ck_assert_int_eq(lstat(at("l"), &status), 0);
    ck_assert(S_ISREG(status.st_mode));
    ck_assert_int_eq(stat(at("target"), &status), 0);
    ck_assert_int_eq(status.st_size, 1);
}
END_TEST

START_TEST(write_refuses_before_any_byte)
{
    struct agent_answer answer;
    uint64_t id;

    ck_assert_int_eq(mkdir(at("d"), 0755), 0);
    check_error(call_write(at("d"), false), "S212");
    ck_assert_int_eq(mkfifo(at("p"), 0644), 0);
    check_error(call_write(at("p"), false), "S212");
    id = call_write(at("no/f"), false);
    agent_client_finish(&client, id, &answer);
    ck_assert_str_eq(answer.code, "S211");
    ck_assert(answer.fix_parents);
    agent_answer_done(&answer);
    id = call_write(at("made/too/f"), true);
    agent_client_end(&client, id, 0, NULL);
    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    agent_answer_done(&answer);
    /* what was under way when the error came crosses it and is dropped */
    id = call_write(at("d"), false);
    agent_client_data(&client, id, 0, "x", 1);
    agent_client_end(&client, id, 0, NULL);
    check_error(id, "S212");
    ping();
}
END_TEST

/* The thread refuses while the loop takes the bytes, which would be worth a CREDIT. */
START_TEST(a_refused_write_grants_nothing_afterwards)
{
    static uint8_t bytes[AGENT_DATA_MAX_BYTES];

    for (int round = 0; round < 500; round++) {
        const uint64_t id = call_write(at("no/f"), false);

        for (int i = 0; i < 3; i++)
            agent_client_data(&client, id, 0, bytes, sizeof(bytes));
        agent_client_end(&client, id, 0, NULL);
        check_error(id, "S211");
        ping();
    }
}
END_TEST

START_TEST(aborted_write_leaves_nothing)
{
    uint64_t id;

    put("f", "old", 3);
    id = call_write(at("f"), false);
    agent_client_data(&client, id, 0, "new", 3);
    agent_client_end(&client, id, 0, "the caller left");
    check_error(id, "S218");
    id = call_write(at("f"), false);
    agent_client_data(&client, id, 0, "new", 3);
    agent_client_cancel(&client, id);
    check_error(id, "S218");
    ck_assert_uint_eq(entries(), 1);
    (void)access(at("f"), F_OK);
}
END_TEST

/* Each of these ends the conversation, in order and without a crash. */
static void check_closed(void)
{
    struct agent_frame frame;

    while (agent_client_receive(&client, &frame, 5000))
        ;
}

/* A write that flows by credit. */
struct flow {
    uint64_t id, window;
    char name[8];
    size_t sent;
    bool answered;
};

#define FLOW_BYTES (3u * 1024 * 1024 + 777) /* ends within a page */
#define FLOW_WINDOW_MAX (2u * 1024 * 1024)

/* Byte AT of the flow with that name. */
static char flow_byte(const struct flow *flow, size_t at)
{
    return (char)(at * 7 + at / 4096 + (size_t)flow->name[0]);
}

static void flow_send(struct flow *flow)
{
    static char piece[AGENT_DATA_MAX_BYTES - 5]; /* no page begins where a piece does */

    while (flow->window > 0 && flow->sent < FLOW_BYTES) {
        size_t size = FLOW_BYTES - flow->sent;

        if (size > flow->window)
            size = (size_t)flow->window;
        if (size > sizeof(piece))
            size = sizeof(piece);
        for (size_t i = 0; i < size; i++)
            piece[i] = flow_byte(flow, flow->sent + i);
        agent_client_data(&client, flow->id, 0, piece, size);
        flow->window -= size;
        flow->sent += size;
        if (flow->sent == FLOW_BYTES)
            agent_client_end(&client, flow->id, 0, NULL);
    }
}

static void flow_take(struct flow *flow, const struct agent_frame *frame)
{
    if (frame->id != flow->id)
        return;
    if (frame->kind == AGENT_FRAME_CREDIT) {
        flow->window += frame->credit;
        ck_assert_uint_le(flow->window, FLOW_WINDOW_MAX);
        return;
    }
    ck_assert_int_eq(frame->kind, AGENT_FRAME_REPLY);
    flow->answered = true;
}

static void check_flow(const struct flow *flow)
{
    static char data[FLOW_BYTES + 1];
    int fd = open(at(flow->name), O_RDONLY);
    size_t size = 0, at_byte;
    ssize_t part;

    while ((part = read(fd, data + size, sizeof(data) - size)) > 0)
        size += (size_t)part;
    (void)close(fd);
    ck_assert_uint_eq(size, FLOW_BYTES);
    for (at_byte = 0; at_byte < size && data[at_byte] == flow_byte(flow, at_byte);)
        at_byte++;
    ck_assert_msg(at_byte == size, "%s differs at %zu", flow->name, at_byte);
}

/* Two of them get large blocks, the others small ones. */
START_TEST(large_writes_flow_by_credit)
{
    struct flow flows[4];
    struct agent_frame frame;
    unsigned answered = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(flows); i++) {
        flows[i] = (struct flow){ .window = AGENT_WINDOW_BYTES, .name = { (char)('a' + i) } };
        flows[i].id = call_write(at(flows[i].name), false);
    }
    while (answered < ARRAY_SIZE(flows)) {
        for (unsigned i = 0; i < ARRAY_SIZE(flows); i++)
            flow_send(&flows[i]);
        ck_assert(agent_client_receive(&client, &frame, 5000));
        for (unsigned i = 0; i < ARRAY_SIZE(flows); i++)
            flow_take(&flows[i], &frame);
        answered += frame.kind == AGENT_FRAME_REPLY;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(flows); i++)
        check_flow(&flows[i]);
    ck_assert_uint_eq(entries(), ARRAY_SIZE(flows));
}
END_TEST

START_TEST(a_short_write_costs_no_credit)
{
    uint64_t id = call_write(at("f"), false);
    struct agent_frame frame;

    agent_client_data(&client, id, 0, "short", 5);
    agent_client_end(&client, id, 0, NULL);
    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_REPLY);
}
END_TEST

static uint64_t credit(uint64_t id, uint64_t size)
{
    agent_client_send(&client,
                      &(struct agent_frame){
                          .kind = AGENT_FRAME_CREDIT, .id = id, .stream = 1, .credit = size });
    return size;
}

START_TEST(a_read_takes_a_wide_window)
{
    static char data[3u * 1024 * 1024];
    uint64_t id, window = AGENT_WINDOW_BYTES;
    struct agent_frame frame;
    size_t size = 0;

    put("f", data, sizeof(data));
    id = call_read(at("f"));
    window += credit(id, AGENT_WIDE_WINDOW_BYTES - AGENT_WINDOW_BYTES);
    while (size < window) {
        ck_assert(agent_client_receive(&client, &frame, 5000));
        size += frame.kind == AGENT_FRAME_DATA ? frame.body.size : 0;
    }
    ck_assert_uint_eq(size, AGENT_WIDE_WINDOW_BYTES);
    ck_assert(agent_client_silent(&client, 50));
    (void)credit(id, AGENT_WIDE_WINDOW_BYTES + 1);
    check_closed();
}
END_TEST

START_TEST(read_delivers_all)
{
    static char data[1000000];
    struct guest_fs_read_head head;
    struct agent_answer answer;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7 + i / 1000);
    put("f", data, sizeof(data));
    agent_client_finish(&client, call_read(at("f")), &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    ck_assert(answer.ended[1]);
    ck_assert_uint_eq(answer.streams[1].size, sizeof(data));
    ck_assert_int_eq(memcmp(answer.streams[1].data, data, sizeof(data)), 0);
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_fs_read_head, answer.head.data,
                                          answer.head.size, &head),
                     0);
    ck_assert_uint_eq(head.size, sizeof(data));
    ck_assert_str_eq(head.mode, "0640");
    codec_free(&type_guest_fs_read_head, &head);
    agent_answer_done(&answer);
    agent_client_finish(&client, call_read((char *)(uintptr_t) "/proc/version"), &answer);
    ck_assert_uint_gt(answer.streams[1].size, 0); /* though its size is 0 */
    agent_answer_done(&answer);
}
END_TEST

START_TEST(read_refuses)
{
    ck_assert_int_eq(mkfifo(at("p"), 0644), 0);
    check_error(call_read(at("p")), "S212");
    check_error(call_read((char *)(uintptr_t) "/dev/null"), "S212");
    check_error(call_read(root), "S212");
    check_error(call_read(at("none")), "S211");
    check_error(call_read((char *)(uintptr_t) "f"), "S210");
}
END_TEST

START_TEST(a_read_that_nobody_takes_can_be_cancelled)
{
    static char data[1000000];
    struct agent_frame frame;
    size_t size = 0;
    uint64_t id;

    put("f", data, sizeof(data));
    id = call_read(at("f"));
    while (size < AGENT_WINDOW_BYTES) { /* no credit is given */
        ck_assert(agent_client_receive(&client, &frame, 5000));
        size += frame.kind == AGENT_FRAME_DATA ? frame.body.size : 0;
    }
    ping();
    agent_client_cancel(&client, id);
    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_END);
    ck_assert_ptr_nonnull(frame.text.data);
    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_ERROR);
}
END_TEST

START_TEST(a_grep_can_be_cancelled)
{
    const struct fs_grep_request request = {
        .sandbox_id = (char *)(uintptr_t) "x",
        .path = at("f"),
        .pattern = { .data = (char *)(uintptr_t) "[^b]++[bc]", .size = 10 },
        .recursive = true,
    };
    char *data = malloc(16 * 1024 * 1024);
    uint64_t id;

    memset(data, 'a', 16 * 1024 * 1024); /* its square would take for ever */
    put("f", data, 16 * 1024 * 1024);
    free(data);
    id = agent_client_call(&client, "fs::grep", &type_fs_grep_request, &request);
    ping();
    ck_assert(agent_client_silent(&client, 500)); /* by now it is in the midst of matching */
    agent_client_cancel(&client, id);
    check_error(id, "S216");
}
END_TEST

START_TEST(unknown_operations)
{
    const struct guest_empty nothing = { 0 };

    check_error(agent_client_call(&client, "fs::teleport", &type_guest_empty, &nothing),
                "S219");
    ping();
}
END_TEST

START_TEST(frames_of_unknown_calls_are_dropped)
{
    agent_client_data(&client, 4711, 0, "x", 1);
    agent_client_cancel(&client, 4711);
    ping();
}
END_TEST

START_TEST(more_than_the_window_is_a_breach)
{
    static char piece[AGENT_DATA_MAX_BYTES];
    const struct guest_exec request = {
        .argv = { .count = 2,
                  .items = (char *[]){ (char *)(uintptr_t) "sleep",
                                       (char *)(uintptr_t) "60" } },
        .has_stdin = true,
    };
    uint64_t id = agent_client_call(&client, "exec", &type_guest_exec, &request);

    for (int i = 0; i < 6; i++)
        agent_client_data(&client, id, 0, piece, sizeof(piece));
    check_closed();
}
END_TEST

START_TEST(a_second_configure_is_a_breach)
{
    /* prefix, array of 3, kind 1, id 0, empty map */
    agent_client_send_raw(&client, "\x04\0\0\0\x93\x01\x00\x80", 8);
    check_closed();
}
END_TEST

static void check_variable(const char *wanted)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;

    agent_client_shell(&client, "echo \"$WHO\"", NULL, 0, &answer, &reply);
    ck_assert_int_eq(reply.exit_code, 0);
    ck_assert_uint_eq(answer.streams[1].size, strlen(wanted));
    ck_assert_mem_eq(answer.streams[1].data, wanted, strlen(wanted));
    agent_answer_done(&answer);
}

/* As often as one likes, and the last CONFIGURE alone is what counts. */
START_TEST(rehearsals_leave_nothing)
{
    agent_client_stop(&client);
    agent_client_start(&client, -1);
    agent_client_configure(&client, "WHO=nobody", true);
    check_variable("nobody\n");
    agent_client_configure(&client, NULL, true);
    check_variable("\n");
    agent_client_configure(&client, "WHO=me", false);
    check_variable("me\n");
    /* prefix, array of 3, kind 1, id 0, empty map */
    agent_client_send_raw(&client, "\x04\0\0\0\x93\x01\x00\x80", 8);
    check_closed();
}
END_TEST

/* Nobody's program goes on behind the last CONFIGURE. */
START_TEST(configure_in_a_rehearsed_call_is_a_breach)
{
    const struct guest_exec request = {
        .argv = { .count = 2,
                  .items = (char *[]){ (char *)(uintptr_t) "sleep",
                                       (char *)(uintptr_t) "60" } },
    };

    agent_client_stop(&client);
    agent_client_start(&client, -1);
    agent_client_configure(&client, NULL, true);
    (void)agent_client_call(&client, "exec", &type_guest_exec, &request);
    agent_client_send_raw(&client, "\x04\0\0\0\x93\x01\x00\x80", 8);
    check_closed();
}
END_TEST

START_TEST(malformed_frames_are_a_breach)
{
    agent_client_send_raw(&client, "\x03\0\0\0\xc1\xc1\xc1", 7);
    check_closed();
}
END_TEST

START_TEST(a_frame_over_the_limit_is_a_breach)
{
    agent_client_send_raw(&client, "\xff\xff\xff\x7f", 4);
    check_closed();
}
END_TEST

START_TEST(poweroff_answers_and_ends)
{
    const struct guest_empty nothing = { 0 };
    struct agent_answer answer;

    agent_client_finish(
        &client, agent_client_call(&client, "poweroff", &type_guest_empty, &nothing), &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    agent_answer_done(&answer);
    check_closed();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent-serve");
    TCase *cases = tcase_create("serve");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, start, stop);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, hello_names_the_operations);
    tcase_add_test(cases, write_replaces_whole);
    tcase_add_test(cases, write_replaces_a_link_itself);
    tcase_add_test(cases, write_refuses_before_any_byte);
    tcase_add_test(cases, a_refused_write_grants_nothing_afterwards);
    tcase_add_test(cases, aborted_write_leaves_nothing);
    tcase_add_test(cases, large_writes_flow_by_credit);
    tcase_add_test(cases, a_short_write_costs_no_credit);
    tcase_add_test(cases, a_read_takes_a_wide_window);
    tcase_add_test(cases, read_delivers_all);
    tcase_add_test(cases, read_refuses);
    tcase_add_test(cases, a_read_that_nobody_takes_can_be_cancelled);
    tcase_add_test(cases, a_grep_can_be_cancelled);
    tcase_add_test(cases, unknown_operations);
    tcase_add_test(cases, frames_of_unknown_calls_are_dropped);
    tcase_add_test(cases, more_than_the_window_is_a_breach);
    tcase_add_test(cases, a_second_configure_is_a_breach);
    tcase_add_test(cases, rehearsals_leave_nothing);
    tcase_add_test(cases, configure_in_a_rehearsed_call_is_a_breach);
    tcase_add_test(cases, malformed_frames_are_a_breach);
    tcase_add_test(cases, a_frame_over_the_limit_is_a_breach);
    tcase_add_test(cases, poweroff_answers_and_ends);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
