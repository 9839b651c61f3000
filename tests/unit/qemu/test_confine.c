/* test_confine.c - what a confined program can and cannot do; the section of the settings. */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "proc.h"
#include "qemu_settings.h"
#include "unit.h"

#define RULES_FD 12

static struct confine confine;

static void setup(void)
{
    struct sandbox_error err = { 0 };

    ck_assert_msg(confine_init(&confine,
                               &(struct confine_options){ .user = "nobody", .program = "sh" },
                               &err) == 0,
                  "%s", err.message);
}

/* Output of a shell command that runs as a QEMU does. */
static const char *run(const char *command, const int *fds, size_t fd_count)
{
    static char text[8192];
    const char *const argv[] = { "sh", "-c", command, NULL };
    int rules_fd = confine_rules(&confine, fds, fd_count), pipe_fds[2], pidfd, status;
    struct confine_child child = { .confine = &confine,
                                   .rules_fd = rules_fd < 0 ? -1 : RULES_FD };
    struct proc_fd all[4];
    size_t count = 0, size = 0;
    ssize_t got;
    pid_t pid;

    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    all[count++] = (struct proc_fd){ pipe_fds[1], 1 };
    all[count++] = (struct proc_fd){ pipe_fds[1], 2 };
    if (rules_fd >= 0)
        all[count++] = (struct proc_fd){ rules_fd, RULES_FD };
    if (fd_count > 0)
        all[count++] = (struct proc_fd){ fds[0], 5 };
    ck_assert_int_eq(proc_spawn(&(struct proc_spec){ .program = "sh",
                                                     .argv = argv,
                                                     .workdir = "/",
                                                     .fds = all,
                                                     .fd_count = count,
                                                     .die_with_parent = true,
                                                     .before_exec = confine_child,
                                                     .before_exec_ctx = &child },
                                &pid, &pidfd),
                     0);
    closep(&pipe_fds[1]);
    while ((got = read(pipe_fds[0], text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t)got;
    text[size] = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    closep(&pipe_fds[0]);
    closep(&pidfd);
    closep(&rules_fd);
    return text;
}

START_TEST(test_privileges)
{
    const char *text;

    setup();
    confine.landlock = 0; /* it would hide what this reads */
    text = run("cat /proc/self/status", NULL, 0);
    ck_assert_ptr_nonnull(strstr(text, "\nNoNewPrivs:\t1\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nCapEff:\t0000000000000000\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nCapPrm:\t0000000000000000\n"));
    ck_assert_ptr_null(strstr(text, "\nUid:\t0\t"));
    if (confine.is_root)
        ck_assert_ptr_nonnull(strstr(text, "\nCapBnd:\t0000000000000000\n"));
    ck_assert_str_eq(run("ulimit -c", NULL, 0), "0\n");
    confine_done(&confine);
}
END_TEST

/* Each test is a process of its own, so the limit stays here. */
START_TEST(test_limits)
{
    const struct rlimit few = { 64, 64 };

    setup();
    confine.landlock = 0;
    ck_assert_str_eq(run("ulimit -Hn; ulimit -Sn", NULL, 0), "256\n256\n");
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_str_eq(run("ulimit -Hn; ulimit -Sn", NULL, 0), "64\n64\n");
    confine_done(&confine);
}
END_TEST

START_TEST(test_network)
{
    setup();
    if (!confine.namespaces)
        return; /* this machine gives none, which the adapter warns of */
    confine.landlock = 0;
    /* Two lines of head, then one interface: loopback, and that is down. */
    ck_assert_ptr_nonnull(strstr(run("wc -l </proc/net/dev", NULL, 0), "3"));
    confine_done(&confine);
}
END_TEST

START_TEST(test_files)
{
    char path[] = "/tmp/test-confine-XXXXXX", command[256];
    const char *text;
    int fd;

    setup();
    if (confine.landlock == 0)
        return; /* as above */
    fd = mkostemp(path, O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, 0666), 0);
    ck_assert_int_eq(write(fd, "secret", 6), 6);
    (void)snprintf(command, sizeof(command), "cat %s; echo x >%s", path, path);
    text = run(command, NULL, 0);
    ck_assert_ptr_null(strstr(text, "secret")); /* although its mode allows that */
    ck_assert_ptr_nonnull(strstr(text, "Permission denied"));
    text = run("ls / /etc /tmp; cat /etc/passwd", NULL, 0);
    ck_assert_ptr_null(strstr(text, "root:"));
    /* What was listed may be opened, for reading alone. */
    text = run("cat /proc/self/fd/5; echo x >/proc/self/fd/5", &fd, 1);
    ck_assert_ptr_nonnull(strstr(text, "secret"));
    ck_assert_ptr_nonnull(strstr(text, "Permission denied"));
    (void)close(fd);
    (void)unlink(path);
    confine_done(&confine);
}
END_TEST

/* A program in a folder of its own must be startable, the rest of that disk not be readable. */
START_TEST(test_program_elsewhere)
{
    struct sandbox_error err = { 0 };
    char folder[] = "/tmp/test-confine-XXXXXX", program[64], command[256];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/bin && cp /bin/true %s/bin/qemu && chmod 755 %s", folder,
                   folder, folder);
    ck_assert_int_eq(system(command), 0);
    (void)snprintf(program, sizeof(program), "%s/bin/qemu", folder);
    ck_assert_int_eq(
        confine_init(&confine,
                     &(struct confine_options){ .user = "nobody", .program = program }, &err),
        0);
    ck_assert_str_eq(confine.program_folder, folder);
    (void)snprintf(command, sizeof(command), "%s && echo started", program);
    ck_assert_str_eq(run(command, NULL, 0), "started\n");
    confine_done(&confine);
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(test_user)
{
    struct sandbox_error err = { 0 };

    if (geteuid() != 0)
        return; /* then it is never looked at */
    ck_assert_int_eq(confine_init(&confine,
                                  &(struct confine_options){ .user = "root", .program = "sh" },
                                  &err),
                     -1);
    ck_assert_str_eq(err.message, "sandbox.qemu.user root is root");
    sandbox_error_done(&err);
    err = (struct sandbox_error){ 0 };
    ck_assert_int_eq(confine_init(&confine,
                                  &(struct confine_options){ .user = "n.o", .program = "sh" },
                                  &err),
                     -1);
    ck_assert_str_eq(err.message, "sandbox.qemu.user n.o is unknown");
    sandbox_error_done(&err);
}
END_TEST

static int read_settings(const char *section, struct qemu_settings *ret, char *ret_message)
{
    struct settings settings = { .path = (char *)(uintptr_t) "file.yaml" };
    struct sandbox_error err = { 0 };
    struct yaml_node *root = NULL;
    char error[256];
    int result;

    ck_assert_msg(yaml_parse(section, strlen(section), &root, error, sizeof(error)) == 0, "%s",
                  error);
    settings.qemu = root;
    result = qemu_settings_read(&settings, ret, &err);
    strcpy(ret_message, err.message);
    sandbox_error_done(&err);
    yaml_free(root);
    return result;
}

START_TEST(test_settings)
{
    struct qemu_settings settings;
    char message[ERROR_MESSAGE_MAX];

    ck_assert_int_eq(read_settings("{}", &settings, message), 0);
    ck_assert_str_eq(settings.program, "qemu-system-x86_64");
    ck_assert_str_eq(settings.user, "nobody");
    ck_assert(settings.templates);
    ck_assert_ptr_null(settings.kernel);
    qemu_settings_done(&settings);
    ck_assert_int_eq(read_settings("{pool_size: 0, kernel: /k}", &settings, message), 0);
    ck_assert_uint_eq(settings.pool_size, 0);
    ck_assert_str_eq(settings.kernel, "/k");
    qemu_settings_done(&settings);
}
END_TEST

START_TEST(test_bad_settings)
{
    static const struct {
        const char *section;
        const char *part; /* of the message */
    } rows[] = {
        { "{acceleration: hvf}", "acceleration hvf is none of auto, kvm, tcg" },
        { "{pool_sice: 2}", "pool_sice" },
        { "{pool_size: many}", "pool_size" },
        { "{kernel: relative}", "kernel" },
        { "{translation_mb: 1}", "translation_mb" },
    };
    struct qemu_settings settings;
    char message[ERROR_MESSAGE_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        ck_assert_int_eq(read_settings(rows[i].section, &settings, message), -1);
        ck_assert_msg(strstr(message, rows[i].part) && strstr(message, "file.yaml"), "%s",
                      message);
    }
}
END_TEST

UNIT_MAIN("qemu_confine", test_privileges, test_limits, test_network, test_files,
          test_program_elsewhere, test_user, test_settings, test_bad_settings)
