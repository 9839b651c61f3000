/* test_mailbox.c - bulk through the disk of a machine, a file in its place: slots and their
 * owners, and the agent's streams over them. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent_client.h"
#include "codec.h"
#include "mailbox.h"
#include "unit.h"

#define SLOT AGENT_MAILBOX_SLOT_BYTES
#define ALL_SLOTS ((1u << AGENT_MAILBOX_SLOTS) - 1)

static struct agent_client client;
static uint8_t bulk[4 * SLOT] __attribute__((aligned(4096)));
static char path[64];

static void fill_bulk(void)
{
    for (size_t i = 0; i < sizeof(bulk); i++)
        bulk[i] = (uint8_t)(i * 13 + (i >> 9));
}

static void start(bool allowed)
{
    int fd;

    fill_bulk();
    (void)strcpy(path, "/tmp/agent-mailbox-XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    agent_client_start_mailbox(&client, allowed);
}

static void stop(void)
{
    agent_client_stop(&client);
    (void)unlink(path);
}

static int memory_new(size_t size)
{
    int fd = memfd_create("mailbox", MFD_CLOEXEC);

    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    return fd;
}

/* Slots. */

START_TEST(test_no_disk)
{
    struct mailbox mailbox;

    mailbox_init(&mailbox, -1);
    mailbox_turn(&mailbox, true);
    ck_assert(!mailbox_on(&mailbox));
    ck_assert_int_eq(mailbox_slot_take(&mailbox), -1);
    ck_assert_int_eq(mailbox_claim(&mailbox, 0), -EPROTO);
    ck_assert_int_eq(mailbox_returned(&mailbox, 1, false), -EPROTO);
    mailbox_done(&mailbox);
    mailbox_init(&mailbox, memory_new(AGENT_MAILBOX_BYTES - 1)); /* too small is none */
    ck_assert_int_eq(mailbox.fd, -1);
}
END_TEST

START_TEST(test_each_slot_once)
{
    struct mailbox mailbox;

    mailbox_init(&mailbox, memory_new(AGENT_MAILBOX_BYTES));
    ck_assert_int_eq(mailbox_slot_take(&mailbox), -1); /* not allowed yet */
    mailbox_turn(&mailbox, true);
    for (int i = 0; i < (int)AGENT_MAILBOX_SLOTS; i++)
        ck_assert_int_eq(mailbox_slot_take(&mailbox), i);
    ck_assert_int_eq(mailbox_slot_take(&mailbox), -1);
    ck_assert_int_eq(mailbox_returned(&mailbox, 1u << 4, false), 0);
    ck_assert_int_eq(mailbox_returned(&mailbox, 1u << 4, false), -EPROTO);
    ck_assert_int_eq(mailbox_slot_take(&mailbox), 4);
    for (unsigned i = 0; i < AGENT_MAILBOX_RETURN_SLOTS; i++) {
        ck_assert_uint_eq(mailbox_take_owed(&mailbox, false), 0);
        ck_assert_int_eq(mailbox_claim(&mailbox, i), 0);
        ck_assert_int_eq(mailbox_claim(&mailbox, i), -EPROTO);
    }
    ck_assert_uint_eq(mailbox_take_owed(&mailbox, false),
                      (1u << AGENT_MAILBOX_RETURN_SLOTS) - 1);
    ck_assert_uint_eq(mailbox_take_owed(&mailbox, true), 0);
    mailbox_done(&mailbox);
}
END_TEST

START_TEST(test_bytes_of_any_place)
{
    static uint8_t to[SLOT + 8192] __attribute__((aligned(4096)));
    struct mailbox mailbox;
    int fd = memory_new(AGENT_MAILBOX_BYTES);

    fill_bulk();
    mailbox_init(&mailbox, fd);
    mailbox_turn(&mailbox, true);
    ck_assert_int_eq(mailbox_put(&mailbox, 15, bulk, 5001), 0);
    ck_assert_int_eq(pread(fd, to, 5001, 15 * (off_t)SLOT), 5001);
    ck_assert_mem_eq(to, bulk, 5001);
    ck_assert_int_eq(pwrite(fd, bulk, SLOT, (16 + 2) * (off_t)SLOT), SLOT);
    for (size_t at = 0; at < 3; at++) { /* aligned and not, with room for the rounded and not */
        memset(to, 0, sizeof(to));
        ck_assert_int_eq(mailbox_get(&mailbox, 2, 1001, to + at, at == 2 ? 1001 : SLOT), 0);
        ck_assert_mem_eq(to + at, bulk, 1001);
    }
    memset(to, 7, sizeof(to));
    ck_assert_int_eq(mailbox_get(&mailbox, 2, 1001, to, 1001), 0);
    ck_assert_uint_eq(to[1001], 7);
    mailbox_done(&mailbox);
}
END_TEST

START_TEST(test_memory_is_given_back)
{
    struct mailbox mailbox;
    struct stat status;
    int fd = memory_new(AGENT_MAILBOX_BYTES);

    mailbox_init(&mailbox, fd);
    mailbox_turn(&mailbox, true);
    ck_assert_int_eq(mailbox_slot_take(&mailbox), 0);
    ck_assert_int_eq(mailbox_slot_take(&mailbox), 1);
    ck_assert_int_eq(mailbox_put(&mailbox, 0, bulk, SLOT), 0);
    ck_assert_int_eq(mailbox_put(&mailbox, 1, bulk, SLOT), 0);
    ck_assert_int_eq(mailbox_returned(&mailbox, 1u << 0, true), 0);
    ck_assert_int_eq(fstat(fd, &status), 0);
    ck_assert_int_eq(status.st_blocks, SLOT / 512); /* the other one is being filled */
    ck_assert_int_eq(mailbox_returned(&mailbox, 1u << 1, true), 0);
    ck_assert_int_eq(fstat(fd, &status), 0);
    ck_assert_int_eq(status.st_blocks, 0);
    ck_assert_int_eq(mailbox_slot_take(&mailbox), 0);
    mailbox_done(&mailbox);
}
END_TEST

/* A pipe with SIZE of the bytes in it. */
static void pipe_new(size_t size, int ret_pair[2])
{
    ck_assert_int_eq(pipe2(ret_pair, O_CLOEXEC | O_NONBLOCK), 0);
    ck_assert_int_ge(fcntl(ret_pair[0], F_SETPIPE_SZ, SLOT), (int)SLOT);
    ck_assert_int_eq(write(ret_pair[1], bulk, size), size);
}

/* What is left in it are the bytes behind AT, up to SIZE. */
static void check_left(int pair[2], size_t at, size_t size)
{
    static uint8_t got[2 * SLOT];
    const ssize_t left = read(pair[0], got, sizeof(got));

    ck_assert_int_eq(left < 0 ? 0 : left, size - at);
    ck_assert(left <= 0 || memcmp(got, bulk + at, (size_t)left) == 0);
    closep(&pair[0]);
    closep(&pair[1]);
}

START_TEST(test_pipe_into_slot)
{
    static const struct {
        size_t in, wanted;
        ssize_t taken;
    } rows[] = { { SLOT, SLOT, SLOT },
                 { 100000, 100000, 99840 },
                 { SLOT, 40000, 39936 },
                 { SLOT, AGENT_MAILBOX_MIN_BYTES - 1, 0 },
                 { 0, SLOT, 0 } };
    static uint8_t got[SLOT];
    struct mailbox mailbox;
    int pair[2], fd = memory_new(AGENT_MAILBOX_BYTES);

    fill_bulk();
    mailbox_init(&mailbox, fd);
    mailbox_turn(&mailbox, true);
    for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++) {
        size_t put = 0;

        pipe_new(rows[i].in, pair);
        ck_assert_int_eq(mailbox_put_pipe(&mailbox, i, pair[0], rows[i].wanted, &put),
                         rows[i].taken);
        ck_assert_uint_eq(put, (size_t)rows[i].taken);
        ck_assert_int_eq(pread(fd, got, put, i * (off_t)SLOT), (ssize_t)put);
        ck_assert_mem_eq(got, bulk, put);
        check_left(pair, put, rows[i].in);
    }
    mailbox_done(&mailbox);
}
END_TEST

/* The kernel splices into no file that is only appended to. */
START_TEST(test_pipe_that_the_disk_refuses)
{
    struct mailbox mailbox;
    int pair[2], fd = memory_new(AGENT_MAILBOX_BYTES);

    fill_bulk();
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_APPEND), 0);
    mailbox_init(&mailbox, fd);
    mailbox_turn(&mailbox, true);
    for (int i = 0; i < 3; i++) {
        size_t put = 1;

        pipe_new(100000, pair);
        ck_assert_int_eq(mailbox_put_pipe(&mailbox, 0, pair[0], 100000, &put), 99840);
        ck_assert_uint_eq(put, 0);
        ck_assert_mem_eq(mailbox_bounce(&mailbox), bulk, 99840);
        check_left(pair, 99840, 100000);
    }
    mailbox_done(&mailbox);
}
END_TEST

/* Streams. */

static uint64_t begin_write(void)
{
    const struct fs_write_request request = {
        .sandbox_id = (char *)(uintptr_t) "x",
        .path = path,
        .mode = (char *)(uintptr_t) "0644",
    };

    return agent_client_call(&client, "fs::write", &type_fs_write_request, &request);
}

static void check_reply(uint64_t id)
{
    struct agent_answer answer;

    agent_client_finish(&client, id, &answer);
    ck_assert_msg(answer.kind == AGENT_FRAME_REPLY, "%s", answer.message);
    agent_answer_done(&answer);
}

static void check_file(size_t size)
{
    static uint8_t got[sizeof(bulk) + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    ck_assert_int_eq(read(fd, got, sizeof(got)), size);
    ck_assert_mem_eq(got, bulk, size);
    (void)close(fd);
}

START_TEST(test_write_of_slots_and_data)
{
    static const struct {
        size_t size;
        bool slot;
    } parts[] = { { 40000, true }, { 3, false },     { 32768, true },
                  { 1, true },     { 60000, false }, { 512, true } };
    uint64_t id;
    size_t at = 0;

    start(true);
    id = begin_write();
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].slot)
            agent_client_slot(&client, id, 0, i, bulk + at, parts[i].size);
        else
            agent_client_data(&client, id, 0, bulk + at, parts[i].size);
        at += parts[i].size;
    }
    agent_client_end(&client, id, 0, NULL);
    check_reply(id);
    check_file(at);
    stop();
}
END_TEST

static void read_file(size_t size, bool through_slots)
{
    const struct fs_read_request request = { .sandbox_id = (char *)(uintptr_t) "x",
                                             .path = path };
    struct agent_answer answer;
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    ck_assert_int_eq(write(fd, bulk, size), size);
    (void)close(fd);
    client.slots = 0;
    agent_client_finish(&client,
                        agent_client_call(&client, "fs::read", &type_fs_read_request, &request),
                        &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    ck_assert_uint_eq(answer.streams[1].size, size);
    ck_assert(size == 0 || memcmp(answer.streams[1].data, bulk, size) == 0);
    ck_assert_int_eq(client.slots > 0, through_slots);
    agent_answer_done(&answer);
}

START_TEST(test_read)
{
    start(true);
    read_file(0, false);
    read_file(1, false);
    read_file(65536, false);
    read_file(65537, false);
    read_file(SLOT - 1, true);
    read_file(SLOT + 1, true);
    read_file(sizeof(bulk) - 4095, true);
    stop();
}
END_TEST

START_TEST(test_read_without_leave)
{
    start(false);
    read_file(sizeof(bulk), false);
    stop();
}
END_TEST

/* An agent that is quick takes each piece as it comes, too few for a slot; here it stands still
 * until more lies in the pipe. */
START_TEST(test_output)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;
    char script[256];

    start(true);
    (void)snprintf(script, sizeof(script),
                   "a() { head -c $1 /dev/zero | tr '\\0' a; }; kill -STOP %1$d; a 200000; "
                   "kill -CONT %1$d; a 2800001; echo >&2 small",
                   (int)client.pid);
    agent_client_shell(&client, script, NULL, 0, &answer, &reply);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    ck_assert_uint_eq(answer.streams[1].size, 3000001);
    ck_assert_uint_eq(answer.streams[1].data[0], 'a');
    ck_assert_mem_eq(answer.streams[1].data, answer.streams[1].data + 1, 3000000);
    ck_assert_uint_eq(answer.streams[2].size, 6);
    ck_assert_uint_gt(client.slots, 0);
    agent_answer_done(&answer);
    stop();
}
END_TEST

/* splice() fails from now on, in us and the agent: that to the disk, or every one. */
static void refuse_splice(bool to_disk_only)
{
    const size_t offset_out = offsetof(struct seccomp_data, args[3]);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_splice, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset_out),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, to_disk_only, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]),
                                        .filter = filter };

    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* Writes of whole pages, of odd sizes, of both, and lines between them. */
#define MIXED                                                                                  \
    "b() { dd bs=$1 count=$2 2>/dev/null; }; seq 400000 >%1$s;"                                \
    "kill -STOP %2$d; head -c 200000 %1$s; kill -CONT %2$d;"                                   \
    "b 4096 100 <%1$s; echo line; b 60007 20 <%1$s; printf x; b 65536 30 <%1$s; b 512 1 "      \
    "<%1$s;"                                                                                   \
    "b 131072 9 <%1$s; b 100001 3 <%1$s; echo end"

static void check_mixed_output(void)
{
    static uint8_t expected[8u << 20];
    struct guest_exec_reply reply;
    struct agent_answer answer;
    char script[1024];
    size_t size;
    FILE *here;

    start(true);
    (void)snprintf(script, sizeof(script), MIXED, path, (int)client.pid);
    here = popen(script, "re");
    ck_assert_ptr_nonnull(here);
    size = fread(expected, 1, sizeof(expected), here);
    ck_assert_int_eq(pclose(here), 0);
    for (int i = 0; i < 3; i++) {
        client.slots = 0;
        agent_client_shell(&client, script, NULL, 0, &answer, &reply);
        ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
        ck_assert_uint_eq(answer.streams[1].size, size);
        ck_assert_mem_eq(answer.streams[1].data, expected, size);
        ck_assert_uint_gt(client.slots, 0);
        agent_answer_done(&answer);
    }
    stop();
}

START_TEST(test_mixed_output)
{
    check_mixed_output();
}
END_TEST

START_TEST(test_mixed_output_refused_by_the_disk)
{
    refuse_splice(true);
    check_mixed_output();
}
END_TEST

START_TEST(test_mixed_output_without_splice)
{
    refuse_splice(false);
    check_mixed_output();
}
END_TEST

/* The program blocks with more than the window; killed at its deadline, what was there comes.
 */
START_TEST(test_output_of_a_window)
{
    char *argv[] = { (char *)(uintptr_t) "/bin/cat", (char *)(uintptr_t) "/dev/zero" };
    const struct guest_exec request = {
        .has_argv = true,
        .argv = { .count = 2, .items = argv },
        .has_timeout_ms = true,
        .timeout_ms = 700,
    };
    struct guest_exec_reply reply;
    struct agent_answer answer;
    struct agent_frame frame;
    size_t size = 0;
    uint64_t id;

    start(true);
    id = agent_client_call(&client, "exec", &type_guest_exec, &request);
    while (size < AGENT_WINDOW_BYTES) {
        ck_assert(agent_client_receive(&client, &frame, 5000));
        ck_assert(frame.kind == AGENT_FRAME_SLOT || frame.kind == AGENT_FRAME_DATA);
        size += frame.kind == AGENT_FRAME_SLOT ? frame.size : frame.body.size;
    }
    ck_assert_uint_eq(size, AGENT_WINDOW_BYTES);
    ck_assert(agent_client_silent(&client, 100));
    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    ck_assert_uint_eq(answer.streams[1].size, 0); /* nobody granted more */
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_exec_reply, answer.body.data,
                                          answer.body.size, &reply),
                     0);
    ck_assert(reply.timed_out);
    agent_answer_done(&answer);
    stop();
}
END_TEST

static uint64_t begin_shell(const char *script)
{
    char *argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t)script };
    const struct guest_exec request = {
        .has_argv = true,
        .argv = { .count = 3, .items = argv },
        .has_timeout_ms = true,
    };

    return agent_client_call(&client, "exec", &type_guest_exec, &request);
}

static void await_reply(uint64_t id, struct buf *output)
{
    struct agent_frame frame;

    do {
        ck_assert(agent_client_receive(&client, &frame, 5000));
        if (frame.id == id && frame.kind == AGENT_FRAME_DATA)
            ck_assert_int_eq(buf_append(output, frame.body.data, frame.body.size), 0);
    } while (frame.id != id || frame.kind != AGENT_FRAME_REPLY);
}

/* Only while output comes in bulk, and not of a program that is started meanwhile. */
START_TEST(test_pace)
{
    _cleanup_(buf_done)
    struct buf policy = { 0 };
    struct agent_frame frame;
    size_t size = 0;
    uint64_t id;

    start(true);
    ck_assert_int_eq(sched_getscheduler(client.pid), SCHED_OTHER);
    id = begin_shell("cat /dev/zero");
    while (size < AGENT_WINDOW_BYTES) {
        ck_assert(agent_client_receive(&client, &frame, 5000));
        size += frame.kind == AGENT_FRAME_SLOT ? frame.size : frame.body.size;
    }
    ck_assert_int_eq(sched_getscheduler(client.pid), SCHED_BATCH);
    await_reply(begin_shell("exec cut -d' ' -f41 /proc/self/stat"), &policy);
    ck_assert_str_eq(buf_text(&policy), "0\n");
    agent_client_cancel(&client, id);
    await_reply(id, &policy);
    ck_assert_int_eq(sched_getscheduler(client.pid), SCHED_OTHER);
    stop();
}
END_TEST

START_TEST(test_small_output_is_data)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;

    start(true);
    agent_client_shell(&client, "for i in 1 2 3 4 5 6 7 8; do echo $i; done", NULL, 0, &answer,
                       &reply);
    ck_assert_uint_eq(answer.streams[1].size, 16);
    ck_assert_uint_eq(client.slots, 0);
    agent_answer_done(&answer);
    stop();
}
END_TEST

START_TEST(test_input)
{
    char *argv[] = { (char *)(uintptr_t) "/bin/cat" };
    const struct guest_exec request = {
        .has_argv = true,
        .argv = { .count = 1, .items = argv },
        .has_timeout_ms = true,
        .has_has_stdin = true,
        .has_stdin = true,
    };
    struct agent_answer answer;
    uint64_t id;

    start(true);
    id = agent_client_call(&client, "exec", &type_guest_exec, &request);
    agent_client_slot(&client, id, 0, 0, bulk, 100001);
    agent_client_data(&client, id, 0, bulk + 100001, 7);
    agent_client_slot(&client, id, 0, 1, bulk + 100008, 100000);
    agent_client_end(&client, id, 0, NULL);
    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    ck_assert_uint_eq(answer.streams[1].size, 200008);
    ck_assert_mem_eq(answer.streams[1].data, bulk, 200008);
    agent_answer_done(&answer);
    stop();
}
END_TEST

/* What crosses the end of a call comes back all the same. */
START_TEST(test_slots_of_a_call_that_is_over)
{
    struct agent_frame frame;

    start(true);
    for (unsigned slot = 0; slot < AGENT_MAILBOX_RETURN_SLOTS; slot++)
        agent_client_slot(&client, 77, 0, slot, bulk, 10);
    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_RETURN);
    ck_assert_uint_eq(frame.slots, (1u << AGENT_MAILBOX_RETURN_SLOTS) - 1);
    agent_client_slot(&client, 78, 0, 3, bulk, 10);
    agent_client_send(&client,
                      &(struct agent_frame){ .kind = AGENT_FRAME_RETURN, .idle = true });
    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_RETURN);
    ck_assert_uint_eq(frame.slots, 1u << 3);
    stop();
}
END_TEST

static void expect_end(const struct agent_frame *frame)
{
    struct agent_frame got;

    agent_client_send(&client, frame);
    ck_assert(!agent_client_receive(&client, &got, 5000));
    stop();
}

START_TEST(test_host_that_breaks_the_rules)
{
    const struct agent_frame slot = { .kind = AGENT_FRAME_SLOT, .id = 9, .slot = 1, .size = 1 };

    start(false);
    expect_end(&slot); /* not allowed */
    start(true);
    agent_client_send(&client, &slot);
    expect_end(&slot); /* not ours any more */
    start(true);
    expect_end(&(struct agent_frame){ .kind = AGENT_FRAME_RETURN, .slots = 1 });
}
END_TEST

UNIT_MAIN("agent-mailbox", test_no_disk, test_each_slot_once, test_bytes_of_any_place,
          test_memory_is_given_back, test_write_of_slots_and_data, test_read,
          test_read_without_leave, test_pipe_into_slot, test_pipe_that_the_disk_refuses,
          test_output, test_mixed_output, test_mixed_output_refused_by_the_disk,
          test_mixed_output_without_splice, test_output_of_a_window, test_pace,
          test_small_output_is_data, test_input, test_slots_of_a_call_that_is_over,
          test_host_that_breaks_the_rules)
