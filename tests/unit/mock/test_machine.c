/* test_machine.c - sandboxes of the mock, from start to gone, with the agent in them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agent_client.h"
#include "codec.h"
#include "mock.h"
#include "unit.h"

static struct backend backend;
static char runtime_dir[] = "/tmp/mock-machine-XXXXXX";
static struct agent_client client;
static int goings;
static char console[8192];

static struct image image = {
    .name = (char *)(uintptr_t) "python",
    .workdir = (char *)(uintptr_t) "/made/for/it",
};
static struct machine_spec spec = {
    .id = "01234567-89ab-4cde-8f01-23456789abcd",
    .image = &image,
    .disk_mb = 64,
    .memory_mb = 128,
    .cpus = 1,
};

static void on_agent(void *ctx, int own_fd, int own_mailbox_fd,
                     const struct machine_network *network)
{
    ck_assert_ptr_null(network);
    client.fd = own_fd;
}

static void on_gone(void *ctx, const char *reason, const char *tail)
{
    ck_assert(*reason);
    (void)snprintf(console, sizeof(console), "%s", tail);
    goings++;
    loop_stop(backend.loop, 0);
}

static const struct machine_events events = { .agent = on_agent, .gone = on_gone };

/* False: bubblewrap cannot be used here. */
static bool start(struct machine **ret_machine)
{
    struct sandbox_error err = { 0 };
    char agent[4096];
    static int usable = -1;

    if (usable < 0)
        usable = system("bwrap --ro-bind / / --unshare-pid true 2>/dev/null") == 0;
    if (!usable)
        return false;
    client = (struct agent_client){ .fd = -1, .next_id = 1, .mailbox_fd = -1 };
    ck_assert_ptr_nonnull(mkdtemp(runtime_dir));
    (void)snprintf(agent, sizeof(agent), "%s/sandbox-guest-agent", getenv("SANDBOX_BIN"));
    ck_assert_int_eq(loop_new(&backend.loop), 0);
    list_init(&backend.machines);
    ck_assert_int_eq(mock_faults_init(&backend), 0);
    ck_assert_msg(launcher_init(&backend.launcher, NULL, agent, runtime_dir, &err) == 0, "%s",
                  err.message);
    ck_assert_msg(mock_machine_start(&backend, &spec, &events, NULL, ret_machine, &err) == 0,
                  "%s", err.message);
    while (client.fd < 0)
        ck_assert_int_eq(loop_turn(backend.loop, 10000), 0);
    return true;
}

static void end(struct machine *machine)
{
    while (goings == 0)
        ck_assert_int_eq(loop_turn(backend.loop, 10000), 0);
    ck_assert_int_eq(loop_turn(backend.loop, 0), 0);
    ck_assert_int_eq(goings, 1);
    mock_machine_free(machine);
    mock_faults_done(&backend);
    launcher_done(&backend.launcher);
    loop_free(backend.loop);
    (void)close(client.fd);
    buf_done(&client.in);
    (void)rmdir(runtime_dir);
}

static void kill_and_end(struct machine *machine)
{
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(mock_machine_kill(machine, &err), 0);
    end(machine);
}

/* Standard output of a script in the sandbox. */
static const char *shell(const char *script)
{
    static struct agent_answer answer;
    struct guest_exec_reply reply;

    agent_answer_done(&answer);
    agent_client_shell(&client, script, NULL, 0, &answer, &reply);
    ck_assert_int_eq(answer.kind, AGENT_FRAME_REPLY);
    return buf_text(&answer.streams[1]);
}

START_TEST(test_a_sandbox_of_its_own)
{
    struct machine *machine;

    if (!start(&machine))
        return;
    agent_client_greet(&client);
    ck_assert_str_eq(shell("cat /proc/1/cmdline | tr '\\0' ' '"),
                     "/run/sandbox-guest-agent --fd 3 ");
    ck_assert_str_eq(
        shell("id -u; hostname; cd /made/for/it && pwd; cat /etc/passwd | head -n1"),
        "0\nsandbox-01234567\n/made/for/it\nroot:x:0:0:root:/root:/bin/sh\n");
    ck_assert_str_eq(shell("for d in / /etc /root /tmp /var/tmp /run; do "
                           "echo x > $d/file || echo $d; done; mkdir /work && echo made"),
                     "made\n");
    ck_assert_str_eq(shell("ls /proc | grep -c '^[0-9]'; stat -c %a /tmp /root"),
                     "5\n1777\n700\n");
    ck_assert_str_eq(shell("cat /proc/net/dev | grep -vc -e lo: -e '|'"), "0\n");
    ck_assert_str_eq(shell("ls /home /srv 2>/dev/null; echo $?"), "2\n");
    kill_and_end(machine);
}
END_TEST

START_TEST(test_all_of_it_is_writable_for_root)
{
    struct machine *machine;

    if (geteuid() != 0 || !start(&machine))
        return;
    agent_client_greet(&client);
    ck_assert_str_eq(
        shell("echo x > /usr/bin/new && cat /usr/bin/new; rm /usr/bin/env && "
              "echo removed; chown 12:34 /usr/bin/new && stat -c %u:%g /usr/bin/new"),
        "x\nremoved\n12:34\n");
    ck_assert_int_eq(access("/usr/bin/env", F_OK), 0); /* the host's is still there */
    ck_assert_int_ne(access("/usr/bin/new", F_OK), 0);
    /* 64 MiB and no more */
    ck_assert_str_eq(
        shell("head -c 80000000 /dev/zero > /big 2>/dev/null || echo full; rm /big; "
              "mount -o remount,rw /proc 2>/dev/null || echo no"),
        "full\nno\n");
    kill_and_end(machine);
}
END_TEST

START_TEST(test_gone_comes_when_the_sandbox_ends_by_itself)
{
    const struct guest_empty nothing = { 0 };
    struct machine *machine;

    if (!start(&machine))
        return;
    agent_client_greet(&client);
    (void)agent_client_call(&client, "poweroff", &type_guest_empty, &nothing);
    end(machine);
    ck_assert_ptr_nonnull(strstr(console, "serve_state"));
}
END_TEST

START_TEST(test_refuse_stop)
{
    struct sandbox_error err = { 0 };
    struct machine *machine;

    if (!start(&machine))
        return;
    ck_assert_int_eq(mock_faults_add(&backend, "{\"fault\":\"refuse_stop\"}", 23, &err), 0);
    ck_assert_int_eq(mock_machine_kill(machine, &err), -1);
    ck_assert_int_eq(err.code, S300);
    kill_and_end(machine);
}
END_TEST

/* The pids of all processes whose command line holds WORD. */
static unsigned count_processes(const char *word)
{
    char command[256];
    unsigned count = 0;
    FILE *output;

    (void)snprintf(command, sizeof(command),
                   "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '^%s$'",
                   word);
    output = popen(command, "r");
    ck_assert_int_eq(fscanf(output, "%u", &count), 1);
    (void)pclose(output);
    return count;
}

START_TEST(test_nothing_survives_a_killed_adapter)
{
    struct machine *machine;
    int ready[2], status;
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        if (!start(&machine))
            _exit(0);
        agent_client_greet(&client);
        (void)shell("setsid sleep 98761 & setsid sh -c 'sleep 98761' & echo");
        ck_assert_int_eq(write(ready[1], "x", 1), 1);
        (void)pause();
    }
    (void)close(ready[1]);
    if (read(ready[0], &byte, 1) == 1) {
        ck_assert_uint_ge(count_processes("98761"), 2);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        for (int i = 0; i < 500 && count_processes("98761") > 0; i++)
            (void)usleep(10000); /* no event tells a stranger of their end */
        ck_assert_uint_eq(count_processes("98761"), 0);
    } else {
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

UNIT_MAIN("mock.machine", test_a_sandbox_of_its_own, test_all_of_it_is_writable_for_root,
          test_gone_comes_when_the_sandbox_ends_by_itself, test_refuse_stop,
          test_nothing_survives_a_killed_adapter)
