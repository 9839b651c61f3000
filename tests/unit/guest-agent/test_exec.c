/* test_exec.c - contract 5.2 as the agent's host sees it. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent_client.h"
#include "codec.h"

static struct agent_client client;
static char cgroup_folder[128];

/* Once with a keeper for each exec, once with cgroups. */

static void start(void)
{
    agent_client_start_ready(&client, -1);
}

static void stop(void)
{
    agent_client_stop(&client);
}

static char cgroup_root[] = "/tmp/agent-cgroup-XXXXXX";
static bool has_cgroups;

static void start_with_cgroups(void)
{
    int fd;

    (void)strcpy(cgroup_root, "/tmp/agent-cgroup-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(cgroup_root));
    has_cgroups = unshare(CLONE_NEWNS) == 0 &&
                  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                  mount("cgroup2", cgroup_root, "cgroup2", 0, NULL) == 0;
    if (!has_cgroups) {
        start(); /* not root, or no cgroup v2: the same again with keepers */
        return;
    }
    (void)snprintf(cgroup_folder, sizeof(cgroup_folder), "%s/agent-test-%d", cgroup_root,
                   (int)getpid());
    ck_assert_int_eq(mkdir(cgroup_folder, 0755), 0);
    fd = open(cgroup_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    agent_client_start_ready(&client, fd);
    (void)close(fd);
}

static void stop_with_cgroups(void)
{
    char command[1024];

    stop();
    if (has_cgroups) {
        (void)snprintf(command, sizeof(command),
                       "for k in %s/*/cgroup.kill; do echo 1 > $k; done; "
                       "until rmdir %s/exec-* %s 2>/dev/null; do sleep 0.01; done",
                       cgroup_folder, cgroup_folder, cgroup_folder);
        ck_assert_int_eq(system(command), 0);
        ck_assert_int_eq(umount2(cgroup_root, MNT_DETACH), 0);
    }
    (void)rmdir(cgroup_root);
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Runs SCRIPT and checks exit code, standard output and standard error. */
static void check_shell(const char *script, const char *input, int code, const char *output,
                        const char *errors)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;

    agent_client_shell(&client, script, input, 0, &answer, &reply);
    ck_assert_msg(answer.kind == AGENT_FRAME_REPLY, "%s", answer.message);
    ck_assert_str_eq(buf_text(&answer.streams[1]), output);
    ck_assert_str_eq(buf_text(&answer.streams[2]), errors);
    ck_assert_int_eq(reply.exit_code, code);
    ck_assert(!reply.timed_out);
    ck_assert(!reply.cancelled);
    agent_answer_done(&answer);
}

/* Runs ARGV with more of a request. */
static void run(const struct guest_exec *request, struct agent_answer *ret_answer,
                struct guest_exec_reply *ret_reply)
{
    uint64_t id = agent_client_call(&client, "exec", &type_guest_exec, request);

    agent_client_finish(&client, id, ret_answer);
    if (ret_answer->kind == AGENT_FRAME_REPLY)
        ck_assert_int_eq(codec_decode_msgpack(&type_guest_exec_reply, ret_answer->body.data,
                                              ret_answer->body.size, ret_reply),
                         0);
}

#define WORDS(...)                                                                             \
    {                                                                                          \
        .count = ARRAY_SIZE(((const char *[]){ __VA_ARGS__ })),                                \
        .items = (char **)(uintptr_t)(const char *[])                                          \
        {                                                                                      \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }

START_TEST(output_and_exit_code)
{
    check_shell("echo out; echo err >&2; exit 7", NULL, 7, "out\n", "err\n");
    check_shell("kill -9 $$", NULL, 137, "", "");
    check_shell("kill -TERM $$", NULL, 143, "", "");
    check_shell(":", NULL, 0, "", "");
}
END_TEST

START_TEST(program_starts_clean)
{
    char expected[64];
    struct rlimit files;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    (void)snprintf(expected, sizeof(expected), "0022\n4\n%llu\n",
                   (unsigned long long)files.rlim_cur);
    check_shell("umask; ls /proc/self/fd | wc -l; ulimit -Sn", NULL, 0, expected, "");
    check_shell("grep -E 'SigBlk|SigIgn' /proc/self/status | cut -f2", NULL, 0,
                "0000000000000000\n0000000000000000\n", "");
    /* a session and a group of its own, and no terminal */
    check_shell("set -- $(cat /proc/self/stat); [ $6 != 0 ] && echo $7; "
                "[ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && [ $(cut -d' ' -f5 /proc/$$/stat) = "
                "$$ ] && echo leader",
                NULL, 0, "0\nleader\n", "");
}
END_TEST

START_TEST(standard_input)
{
    check_shell("cat", NULL, 0, "", "");
    check_shell("cat", "", 0, "", "");
    check_shell("cat; echo end", "words", 0, "wordsend\n", "");
}
END_TEST

START_TEST(unread_input_is_no_failure)
{
    static char page[AGENT_DATA_MAX_BYTES];
    const struct guest_exec request = { .argv = WORDS("/bin/true"), .has_stdin = true };
    struct guest_exec_reply reply;
    struct agent_answer answer;
    uint64_t id = agent_client_call(&client, "exec", &type_guest_exec, &request);

    for (int i = 0; i < 4; i++) /* a whole window, more than the pipe holds */
        agent_client_data(&client, id, 0, page, sizeof(page));
    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_exec_reply, answer.body.data,
                                          answer.body.size, &reply),
                     0);
    ck_assert_int_eq(reply.exit_code, 0);
    agent_answer_done(&answer);
    check_shell("echo still here", NULL, 0, "still here\n", "");
}
END_TEST

START_TEST(large_output_comes_whole)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;

    agent_client_shell(&client, "head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2",
                       NULL, 0, &answer, &reply);
    ck_assert_uint_eq(answer.streams[1].size, 5000000);
    ck_assert_uint_eq(answer.streams[2].size, 3000000);
    agent_answer_done(&answer);
}
END_TEST

START_TEST(a_slow_host_slows_the_program)
{
    const struct guest_exec request = {
        .argv = WORDS("/bin/sh", "-c", "head -c 1000000 /dev/zero; echo done >&2"),
    };
    uint64_t id = agent_client_call(&client, "exec", &type_guest_exec, &request);
    struct agent_frame frame;
    size_t size = 0;

    while (size < AGENT_WINDOW_BYTES) { /* without credit no more comes */
        ck_assert(agent_client_receive(&client, &frame, 5000));
        ck_assert_int_eq(frame.kind, AGENT_FRAME_DATA);
        size += frame.body.size;
    }
    ck_assert_uint_eq(size, AGENT_WINDOW_BYTES);
    agent_client_send(&client, &(struct agent_frame){ .kind = AGENT_FRAME_PING, .id = 99 });
    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_PONG);
    ck_assert_uint_eq(frame.id, 99);
    agent_client_cancel(&client, id);
    do {
        ck_assert(agent_client_receive(&client, &frame, 5000));
    } while (frame.kind != AGENT_FRAME_REPLY);
}
END_TEST

START_TEST(background_children_outlive_the_exec)
{
    char path[] = "/tmp/agent-test-XXXXXX";
    int64_t before = now_ms();
    char script[512];
    struct stat status;

    ck_assert_int_ge(mkstemp(path), 0);
    /* the child holds both pipes, writes into them later and must not die of it */
    (void)snprintf(
        script, sizeof(script),
        "(sleep 1; i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890"
        "1234567890; i=$((i+1)); done; echo ok > %s) & echo started",
        path);
    check_shell(script, NULL, 0, "started\n", "");
    ck_assert_int_lt(now_ms() - before, 900);
    (void)snprintf(script, sizeof(script), "tail -f %s | head -n 1", path);
    check_shell(script, NULL, 0, "ok\n", "");
    ck_assert_int_eq(stat(path, &status), 0);
    (void)unlink(path);
}
END_TEST

START_TEST(a_program_without_outputs_still_runs)
{
    const int64_t before = now_ms();

    check_shell("echo out; echo err >&2; exec >&- 2>&-; sleep 0.3; exit 5", NULL, 5, "out\n",
                "err\n");
    ck_assert_int_ge(now_ms() - before, 300);
}
END_TEST

START_TEST(output_of_the_last_moment_counts)
{
    check_shell("(sleep 0.03; echo late) & echo early", NULL, 0, "early\nlate\n", "");
}
END_TEST

/* TEXT with our pid for each `@`, so that the sleepers of another run are not taken for ours.
 * In static storage, until the next call. */
static const char *marked(const char *text)
{
    static char script[1024];
    size_t size = 0;

    for (; *text; text++) {
        ck_assert_uint_lt(size + 16, sizeof(script));
        if (*text == '@')
            size += (size_t)snprintf(script + size, sizeof(script) - size, "%d", getpid());
        else
            script[size++] = *text;
    }
    script[size] = 0;
    return script;
}

/* A tree with a child in a session of its own, one in the background, one deep down. */
static const char tree_script[] =
    "echo begun; setsid sleep 1234.@ & "
    "(setsid sh -c 'sleep 1235.@ & sleep 1236.@' &) ; sleep 1237.@";

static unsigned count_sleepers(void)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;
    unsigned count;

    agent_client_shell(
        &client,
        marked("for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f 2>/dev/null; echo; "
               "done | grep -c '^sleep 123[4-7][.]@'"),
        NULL, 0, &answer, &reply);
    count = (unsigned)atoi(buf_text(&answer.streams[1]));
    agent_answer_done(&answer);
    return count;
}

START_TEST(deadline_kills_the_whole_tree)
{
    int64_t before = now_ms();
    struct guest_exec_reply reply;
    struct agent_answer answer;

    agent_client_shell(&client, marked(tree_script), NULL, 300, &answer, &reply);
    ck_assert(reply.timed_out);
    ck_assert(!reply.cancelled);
    ck_assert_str_eq(buf_text(&answer.streams[1]), "begun\n");
    ck_assert_int_ge(now_ms() - before, 300);
    ck_assert_int_lt(now_ms() - before, 2000);
    agent_answer_done(&answer);
    ck_assert_uint_eq(count_sleepers(), 0);
}
END_TEST

START_TEST(cancel_kills_the_whole_tree)
{
    const struct guest_exec request = { .argv = WORDS("/bin/sh", "-c", marked(tree_script)) };
    uint64_t id = agent_client_call(&client, "exec", &type_guest_exec, &request);
    struct guest_exec_reply reply;
    struct agent_answer answer;
    struct agent_frame frame;

    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_DATA);
    agent_client_cancel(&client, id);
    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_exec_reply, answer.body.data,
                                          answer.body.size, &reply),
                     0);
    ck_assert(reply.cancelled);
    agent_answer_done(&answer);
    ck_assert_uint_eq(count_sleepers(), 0);
}
END_TEST

static void signal_call(uint64_t call, uint32_t number, struct agent_answer *ret_answer)
{
    const struct guest_signal request = { .call = call, .number = number };

    agent_client_finish(&client,
                        agent_client_call(&client, "signal", &type_guest_signal, &request),
                        ret_answer);
}

/* To the program and what is in its group; the exec is over only when the program ends. */
START_TEST(a_signal_reaches_the_group)
{
    const struct guest_exec request = { .argv = WORDS(
                                            "/bin/sh", "-c",
                                            "trap 'echo caught; exit 7' TERM; "
                                            "sh -c 'echo up; exec sleep 1234' & wait; wait") };
    uint64_t id = agent_client_call(&client, "exec", &type_guest_exec, &request);
    const struct guest_signal signal_request = { .call = id, .number = SIGTERM };
    struct guest_exec_reply reply;
    struct agent_answer answer;
    struct agent_frame frame;

    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_DATA);
    (void)agent_client_call(&client, "signal", &type_guest_signal, &signal_request);
    ck_assert(agent_client_receive(&client, &frame, 5000));
    ck_assert_int_eq(frame.kind, AGENT_FRAME_REPLY);
    ck_assert_uint_eq(frame.id, id + 1);
    agent_client_finish(&client, id, &answer);
    ck_assert_int_eq(codec_decode_msgpack(&type_guest_exec_reply, answer.body.data,
                                          answer.body.size, &reply),
                     0);
    ck_assert_int_eq(reply.exit_code, 7);
    ck_assert(!reply.cancelled && !reply.timed_out);
    ck_assert_ptr_nonnull(strstr(buf_text(&answer.streams[1]), "caught\n"));
    agent_answer_done(&answer);
    signal_call(id, SIGTERM, &answer); /* of a call that is over: dropped */
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    agent_answer_done(&answer);
    ck_assert_uint_eq(count_sleepers(), 0);
}
END_TEST

START_TEST(sync_is_answered)
{
    const struct guest_empty request = { 0 };
    struct agent_answer answer;

    agent_client_finish(
        &client, agent_client_call(&client, "sync", &type_guest_empty, &request), &answer);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    agent_answer_done(&answer);
}
END_TEST

START_TEST(a_storm_of_forks_is_killed)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;
    int64_t before = now_ms();

    agent_client_shell(
        &client,
        marked("f() { setsid sleep 1234.@ & (f2 &) ; }; f2() { f; sleep 0.01; f; }; "
               "i=0; while [ $i -lt 40 ]; do f; i=$((i+1)); done; "
               "while :; do sleep 1235.@ & done"),
        NULL, 400, &answer, &reply);
    ck_assert(reply.timed_out);
    ck_assert_int_lt(now_ms() - before, 5000);
    agent_answer_done(&answer);
    ck_assert_uint_eq(count_sleepers(), 0);
}
END_TEST

START_TEST(killing_everything_spares_the_exit_code)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;

    /* as `kill -9 -1` does in a sandbox: the parent, which keeps the tree, goes first */
    agent_client_shell(&client, "kill -9 $PPID; sleep 0.1; echo alive; exit 5", NULL, 0,
                       &answer, &reply);
    ck_assert_str_eq(buf_text(&answer.streams[1]), "alive\n");
    ck_assert_int_eq(reply.exit_code, 5);
    agent_answer_done(&answer);
    /* and sooner than the keeper can tell of it */
    for (int i = 0; i < 50; i++) {
        agent_client_shell(&client, "kill -9 $PPID; exit 5", NULL, 0, &answer, &reply);
        ck_assert_int_eq(reply.exit_code, 5);
        agent_answer_done(&answer);
    }
}
END_TEST

/* 5.2.6 */
static void check_refused(const struct guest_exec *request, int code, const char *errors)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;

    run(request, &answer, &reply);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    ck_assert_int_eq(reply.exit_code, code);
    ck_assert_str_eq(buf_text(&answer.streams[1]), "");
    ck_assert_str_eq(buf_text(&answer.streams[2]), errors);
    agent_answer_done(&answer);
}

START_TEST(programs_that_cannot_start)
{
    check_refused(&(struct guest_exec){ .argv = WORDS("no-such-program") }, 127,
                  "exec: no-such-program: not found\n");
    check_refused(&(struct guest_exec){ .argv = WORDS("/no/such", "x") }, 127,
                  "exec: /no/such: not found\n");
    check_refused(&(struct guest_exec){ .argv = WORDS("/etc/passwd/x") }, 127,
                  "exec: /etc/passwd/x: not found\n");
    check_refused(&(struct guest_exec){ .argv = WORDS("/etc/passwd") }, 126,
                  "exec: /etc/passwd: permission denied\n");
    check_refused(&(struct guest_exec){ .argv = WORDS("/etc") }, 126,
                  "exec: /etc: permission denied\n");
    check_refused(&(struct guest_exec){ .argv = WORDS("true"),
                                        .has_workdir = true,
                                        .workdir = (char *)(uintptr_t) "/none" },
                  127, "exec: /none: not found\n");
    check_refused(&(struct guest_exec){ .argv = WORDS("true"),
                                        .has_workdir = true,
                                        .workdir = (char *)(uintptr_t) "/etc/passwd" },
                  127, "exec: /etc/passwd: not found\n");
}
END_TEST

START_TEST(other_failures_to_start_are_s300)
{
    char path[] = "/tmp/agent-test-XXXXXX";
    int fd = mkstemp(path);
    struct guest_exec request = { .argv = WORDS(path) };
    struct guest_exec_reply reply;
    struct agent_answer answer;

    ck_assert_int_eq(write(fd, "no magic\n", 9), 9);
    ck_assert_int_eq(fchmod(fd, 0755), 0);
    ck_assert_int_eq(close(fd), 0);
    run(&request, &answer, &reply);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_ERROR);
    ck_assert_str_eq(answer.code, "S300");
    ck_assert_ptr_nonnull(strstr(answer.message, path));
    agent_answer_done(&answer);
    (void)unlink(path);
}
END_TEST

START_TEST(path_of_its_own_environment)
{
    struct guest_exec request = {
        .argv = WORDS("sh", "-c", "echo $A $HOME"),
        .has_env = true,
        .env = WORDS("A=1", "=x", "noequals", "A=2"),
    };
    struct guest_exec_reply reply;
    struct agent_answer answer;

    run(&request, &answer, &reply);
    ck_assert_str_eq(buf_text(&answer.streams[1]), "2 /root\n");
    agent_answer_done(&answer);
    check_refused(&(struct guest_exec){ .argv = WORDS("sh"),
                                        .has_env = true,
                                        .env = WORDS("PATH=/nowhere:/etc/passwd") },
                  127, "exec: sh: not found\n");
    request = (struct guest_exec){
        .argv = WORDS("sh", "-c", "pwd"),
        .has_env = true,
        .env = WORDS("PATH=/nowhere::"),
        .has_workdir = true,
        .workdir = (char *)(uintptr_t) "/usr/bin",
    };
    run(&request, &answer, &reply);
    ck_assert_int_eq(reply.exit_code, 0);
    ck_assert_str_eq(buf_text(&answer.streams[1]), "/usr/bin\n");
    agent_answer_done(&answer);
}
END_TEST

static unsigned agent_descriptors(void)
{
    char path[64];
    unsigned count = 0;
    DIR *folder;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)client.pid);
    folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    while (readdir(folder))
        count++;
    (void)closedir(folder);
    return count;
}

static bool agent_has_children(void)
{
    char path[64];
    FILE *file;
    bool any;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)client.pid,
                   (int)client.pid);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    any = fgetc(file) != EOF;
    (void)fclose(file);
    return any;
}

/* Whatever the agent does after an answer is done, and whoever kept a program is reaped: what
 * was done for that is over with the next PONG. */
static void agent_settle(void)
{
    struct agent_frame frame;
    bool busy;

    do {
        busy = agent_has_children();
        frame = (struct agent_frame){ .kind = AGENT_FRAME_PING, .id = 1 };
        agent_client_send(&client, &frame);
        ck_assert(agent_client_receive(&client, &frame, 5000));
        ck_assert_int_eq(frame.kind, AGENT_FRAME_PONG);
    } while (busy);
}

START_TEST(execs_leave_no_descriptors)
{
    unsigned count;

    check_shell("exit 1", NULL, 1, "", ""); /* what is made once */
    agent_settle();
    count = agent_descriptors();
    for (int i = 0; i < 20; i++) {
        check_shell("cat; exit 2", "input", 2, "input", "");
        check_refused(&(struct guest_exec){ .argv = WORDS("/nowhere") }, 127,
                      "exec: /nowhere: not found\n");
    }
    agent_settle();
    ck_assert_uint_eq(agent_descriptors(), count);
}
END_TEST

START_TEST(a_thousand_short_execs_lose_nothing)
{
    char script[64], output[16], errors[16];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(script, sizeof(script), "echo o%d; echo e%d >&2; exit %d", i, i,
                       i % 256);
        (void)snprintf(output, sizeof(output), "o%d\n", i);
        (void)snprintf(errors, sizeof(errors), "e%d\n", i);
        check_shell(script, NULL, i % 256, output, errors);
    }
}
END_TEST

START_TEST(many_at_once)
{
    enum { COUNT = 40 };
    struct guest_exec request = { .argv = WORDS("/bin/sh", "-c", "sleep 0.2; echo x") };
    unsigned replies = 0, bytes = 0;
    struct agent_frame frame;

    for (int i = 0; i < COUNT; i++)
        (void)agent_client_call(&client, "exec", &type_guest_exec, &request);
    while (replies < COUNT) {
        ck_assert(agent_client_receive(&client, &frame, 10000));
        replies += frame.kind == AGENT_FRAME_REPLY;
        bytes += frame.kind == AGENT_FRAME_DATA ? (unsigned)frame.body.size : 0;
    }
    ck_assert_uint_eq(bytes, 2 * COUNT);
}
END_TEST

START_TEST(each_exec_in_a_cgroup)
{
    struct guest_exec_reply reply;
    struct agent_answer answer;

    if (!has_cgroups)
        return;
    for (int i = 0; i < 3; i++) { /* the second uses the first one's again */
        agent_client_shell(&client, "cat /proc/self/cgroup | grep -o 'exec-.*'", NULL, 0,
                           &answer, &reply);
        ck_assert_str_eq(buf_text(&answer.streams[1]), "exec-1\n");
        agent_answer_done(&answer);
    }
}
END_TEST

START_TEST(spoilt_cgroups_do_no_harm)
{
    char script[512];

    if (!has_cgroups)
        return;
    check_shell("echo first", NULL, 0, "first\n", "");
    /* the one that is kept for the next exec: removed, then of a type that takes no process */
    (void)snprintf(script, sizeof(script), "rmdir %s/exec-*", cgroup_folder);
    ck_assert_int_eq(system(script), 0);
    check_shell("echo next", NULL, 0, "next\n", "");
    check_shell("echo next", NULL, 0, "next\n", "");
    (void)snprintf(script, sizeof(script),
                   "for t in %s/exec-*/cgroup.type; do echo threaded > $t; done",
                   cgroup_folder);
    ck_assert_int_eq(system(script), 0);
    check_shell("echo next", NULL, 0, "next\n", "");
    check_shell("echo next", NULL, 0, "next\n", "");
}
END_TEST

static TCase *exec_cases(const char *name, void (*begin)(void), void (*finish)(void))
{
    TCase *cases = tcase_create(name);

    tcase_add_checked_fixture(cases, begin, finish);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, output_and_exit_code);
    tcase_add_test(cases, program_starts_clean);
    tcase_add_test(cases, standard_input);
    tcase_add_test(cases, unread_input_is_no_failure);
    tcase_add_test(cases, large_output_comes_whole);
    tcase_add_test(cases, a_slow_host_slows_the_program);
    tcase_add_test(cases, background_children_outlive_the_exec);
    tcase_add_test(cases, a_program_without_outputs_still_runs);
    tcase_add_test(cases, execs_leave_no_descriptors);
    tcase_add_test(cases, output_of_the_last_moment_counts);
    tcase_add_test(cases, deadline_kills_the_whole_tree);
    tcase_add_test(cases, cancel_kills_the_whole_tree);
    tcase_add_test(cases, a_signal_reaches_the_group);
    tcase_add_test(cases, a_storm_of_forks_is_killed);
    tcase_add_test(cases, programs_that_cannot_start);
    tcase_add_test(cases, other_failures_to_start_are_s300);
    tcase_add_test(cases, path_of_its_own_environment);
    tcase_add_test(cases, a_thousand_short_execs_lose_nothing);
    tcase_add_test(cases, many_at_once);
    return cases;
}

int main(void)
{
    Suite *suite = suite_create("agent-exec");
    TCase *with_keepers = exec_cases("keepers", start, stop);
    TCase *with_cgroups = exec_cases("cgroups", start_with_cgroups, stop_with_cgroups);
    SRunner *runner;
    int failed;

    tcase_add_test(with_keepers, killing_everything_spares_the_exit_code);
    tcase_add_test(with_keepers, sync_is_answered);
    tcase_add_test(with_cgroups, each_exec_in_a_cgroup);
    tcase_add_test(with_cgroups, spoilt_cgroups_do_no_harm);
    suite_add_tcase(suite, with_keepers);
    suite_add_tcase(suite, with_cgroups);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
