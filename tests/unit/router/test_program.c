/* test_program.c - sandbox-router itself: its command line, reload, a second one, its end; with
 * the adapter that uses nothing of this tree. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native_client.h"
#include "proc.h"
#include "unit.h"

#define WAIT_MS 20000
#define READY_FD 9

struct program {
    char folder[64];
    char config[80];
    char url[96];
    pid_t pid;
    int pidfd;
    int ready;
    FILE *log;
};

static void write_config(const struct program *program, const char *sandbox)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s.new", program->config);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file,
                             "sandbox:\n  runtime_dir: %s/run\n  listen: ['127.0.0.1:0']\n%s",
                             program->folder, sandbox),
                     0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(path, program->config), 0); /* as editors do */
}

/* `adapter: NAME` with the PAIR0 program as its command. */
static const char *adapter(const struct program *program, const char *name)
{
    static char text[512];

    (void)snprintf(text, sizeof(text), "  adapter: %s\n  command: [%s, '%s', %s]\n", name,
                   PAIR0_ADAPTER, program->url, name);
    return text;
}

static void spawn(struct program *program, const char *const *argv)
{
    int ends[2];
    struct proc_fd fds[] = { { 0, READY_FD }, { fileno(program->log), STDERR_FILENO } };
    struct proc_spec spec = {
        .argv = argv, .fds = fds, .fd_count = ARRAY_SIZE(fds), .die_with_parent = true
    };
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/sandbox-router", getenv("SANDBOX_BIN"));
    spec.program = path;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    fds[0].fd = ends[1];
    ck_assert_int_eq(proc_spawn(&spec, &program->pid, &program->pidfd), 0);
    ck_assert_int_eq(close(ends[1]), 0);
    program->ready = ends[0];
}

static void program_prepare(struct program *program)
{
    *program = (struct program){ .folder = "/tmp/router-test-XXXXXX", .log = tmpfile() };
    ck_assert_ptr_nonnull(mkdtemp(program->folder));
    ck_assert_ptr_nonnull(program->log);
    (void)snprintf(program->config, sizeof(program->config), "%s/config.yaml", program->folder);
    (void)snprintf(program->url, sizeof(program->url), "ipc://%s/run/router.sock",
                   program->folder);
}

static void program_start(struct program *program)
{
    const char *const argv[] = { "sandbox-router", "--config", program->config,
                                 "--ready-fd",     "9",        NULL };

    spawn(program, argv);
}

/* The next line must begin with LINE. */
static void await_line(struct program *program, const char *line)
{
    char got[128];
    size_t size = 0;

    while (size < sizeof(got) - 1 && (size == 0 || got[size - 1] != '\n')) {
        struct pollfd wait = { .fd = program->ready, .events = POLLIN };

        ck_assert_msg(poll(&wait, 1, WAIT_MS) == 1, "no line, want %s", line);
        ck_assert_int_eq(read(program->ready, got + size, 1), 1);
        size++;
    }
    got[size] = '\0';
    ck_assert_msg(strncmp(got, line, strlen(line)) == 0, "got %s, want %s", got, line);
}

/* Its exit code. */
static int program_end(struct program *program)
{
    struct pollfd wait = { .fd = program->pidfd, .events = POLLIN };
    int status;

    ck_assert_int_eq(poll(&wait, 1, WAIT_MS), 1);
    ck_assert_int_eq(waitpid(program->pid, &status, 0), program->pid);
    ck_assert(WIFEXITED(status));
    (void)close(program->pidfd);
    (void)close(program->ready);
    return WEXITSTATUS(status);
}

static int terminate(struct program *program)
{
    ck_assert_int_eq(proc_pidfd_signal(program->pidfd, SIGTERM), 0);
    return program_end(program);
}

static bool logged(struct program *program, const char *text)
{
    char line[8192];
    bool found = false;

    rewind(program->log);
    while (fgets(line, sizeof(line), program->log))
        found |= strstr(line, text) != NULL;
    return found;
}

static void program_remove(struct program *program)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -r %s", program->folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(fclose(program->log), 0);
}

static void expect_reply(struct program *program, const char *function, const char *body,
                         const char *text)
{
    struct native_client *client;
    struct native_call *call;

    ck_assert_int_eq(native_client_new(program->url, WAIT_MS, &client), 0);
    ck_assert_int_eq(native_call_start(client, function, body, strlen(body), &call), 0);
    ck_assert_int_eq(native_call_wait(call, WAIT_MS), 0);
    ck_assert_msg(strstr(native_call_body(call, NULL), text) != NULL, "%s",
                  native_call_body(call, NULL));
    native_client_free(client);
}

START_TEST(test_command_line)
{
    static const struct {
        const char *const argv[4];
        int code;
    } rows[] = {
        { { "sandbox-router", "--help" }, 0 },
        { { "sandbox-router", "--version" }, 0 },
        { { "sandbox-router" }, 2 },
        { { "sandbox-router", "--bogus" }, 2 },
        { { "sandbox-router", "--config" }, 2 },
        { { "sandbox-router", "--log-level=loud" }, 2 },
        { { "sandbox-router", "--config=/nonexistent", "more" }, 2 },
        { { "sandbox-router", "--config=/nonexistent" }, 1 },
    };
    struct program program;

    ck_assert_int_eq(unsetenv("SANDBOX_CONFIG"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        program_prepare(&program);
        spawn(&program, rows[i].argv);
        ck_assert_msg(program_end(&program) == rows[i].code, "row %zu", i);
        program_remove(&program);
    }
}
END_TEST

START_TEST(test_bad_settings)
{
    struct program program;

    program_prepare(&program);
    write_config(&program, "  bogus: 1\n");
    program_start(&program);
    ck_assert_int_eq(program_end(&program), 1);
    ck_assert(logged(&program, "config.yaml:4"));
    ck_assert(logged(&program, "bogus"));
    program_remove(&program);
}
END_TEST

START_TEST(test_a_plain_pair0_adapter)
{
    struct program program;

    program_prepare(&program);
    write_config(&program, adapter(&program, "pair0"));
    program_start(&program);
    await_line(&program, "listening ");
    await_line(&program, "bound pair0\n");
    expect_reply(&program, "sandbox::fs::write", "{\"a\" : [1.0, \"\\u00e9\"]}",
                 "{\"a\" : [1.0, \"\\u00e9\"]}");
    expect_reply(&program, "sandbox::adapter::info", "{}", "\"status\":\"bound\"");
    ck_assert_int_eq(terminate(&program), 0);
    program_remove(&program);
}
END_TEST

START_TEST(test_second_router)
{
    struct program first, second;

    program_prepare(&first);
    write_config(&first, "");
    program_start(&first);
    await_line(&first, "listening ");
    second = first;
    second.log = tmpfile();
    ck_assert_ptr_nonnull(second.log);
    program_start(&second);
    ck_assert_int_eq(program_end(&second), 1);
    ck_assert(logged(&second, "another router (pid "));
    ck_assert_int_eq(fclose(second.log), 0);
    expect_reply(&first, "sandbox::list", "{}", "S303"); /* undisturbed */
    ck_assert_int_eq(proc_pidfd_signal(first.pidfd, SIGKILL), 0);
    ck_assert_int_eq(waitpid(first.pid, NULL, 0), first.pid);
    (void)close(first.pidfd);
    (void)close(first.ready);

    program_start(&first); /* over what a killed one leaves behind */
    await_line(&first, "listening ");
    expect_reply(&first, "sandbox::list", "{}", "S303");
    ck_assert_int_eq(terminate(&first), 0);
    program_remove(&first);
}
END_TEST

START_TEST(test_reload)
{
    struct program program;

    program_prepare(&program);
    write_config(&program, adapter(&program, "one"));
    program_start(&program);
    await_line(&program, "listening ");
    await_line(&program, "bound one\n");

    write_config(&program, adapter(&program, "two")); /* the change itself is noticed */
    await_line(&program, "bound two\n");
    expect_reply(&program, "sandbox::adapter::info", "{}", "\"adapter\":\"two\"");

    write_config(&program, "  adapter: 7: 8\n"); /* bad: the old settings stay */
    while (!logged(&program, "event=reload_failed"))
        expect_reply(&program, "sandbox::adapter::info", "{}", "\"adapter\":\"two\"");
    ck_assert(logged(&program, "config.yaml:4"));
    expect_reply(&program, "sandbox::list", "{\"x\":1}", "{\"x\":1}");

    write_config(&program, adapter(&program, "three"));
    ck_assert_int_eq(proc_pidfd_signal(program.pidfd, SIGHUP), 0);
    await_line(&program, "bound three\n");
    ck_assert_int_eq(terminate(&program), 0);
    program_remove(&program);
}
END_TEST

UNIT_MAIN("router.program", test_command_line, test_bad_settings, test_a_plain_pair0_adapter,
          test_second_router, test_reload)
