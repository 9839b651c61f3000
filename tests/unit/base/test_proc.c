/* test_proc.c - spawned programs, their descriptors and signals; children and signals in a
 * loop. */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "buf.h"
#include "loop.h"
#include "turn.h"
#include "unit.h"

struct ended {
    unsigned calls;
    int status;
    struct loop_child *child;
    bool frees;
};

static void on_ended(void *ctx, int wait_status)
{
    struct ended *ended = ctx;

    ended->calls++;
    ended->status = wait_status;
    if (ended->frees)
        loop_child_free(take_ptr(ended->child));
}

/* Runs a shell command to its end; its standard output is in *output. */
static int run_shell(struct proc_spec *spec, const char *command, struct buf *output)
{
    const char *argv[] = { "sh", "-c", command, NULL };
    struct proc_fd fds[8];
    int pipe_fds[2], pidfd, status;
    pid_t pid;
    ssize_t size;

    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    for (size_t i = 0; i < spec->fd_count; i++)
        fds[i] = spec->fds[i];
    fds[spec->fd_count] = (struct proc_fd){ .fd = pipe_fds[1], .target = 1 };
    spec->fds = fds;
    spec->fd_count++;
    spec->program = "sh";
    spec->argv = argv;
    ck_assert_int_eq(proc_spawn(spec, &pid, &pidfd), 0);
    closep(&pipe_fds[1]);
    do {
        uint8_t *place = buf_reserve(output, 4096);

        ck_assert_ptr_nonnull(place);
        size = read(pipe_fds[0], place, 4096);
        ck_assert_int_ge(size, 0);
        output->size += (size_t)size;
    } while (size > 0);
    closep(&pipe_fds[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    closep(&pidfd);
    return status;
}

static void check_output(struct proc_spec *spec, const char *command, const char *expected)
{
    _cleanup_(buf_done)
    struct buf output = { 0 };

    ck_assert_int_eq(run_shell(spec, command, &output), 0);
    ck_assert_str_eq(buf_text(&output), expected);
}

START_TEST(test_environment_and_directory)
{
    const char *const environment[] = { "ONLY=this", NULL };
    struct proc_spec spec = { .environment = environment, .workdir = "/usr" };
    struct proc_spec ours = { .workdir = NULL };

    check_output(&spec, "echo $ONLY $HOME; pwd", "this\n/usr\n");
    ck_assert_int_eq(setenv("PROC_TEST", "inherited", 1), 0);
    check_output(&ours, "echo $PROC_TEST", "inherited\n");
}
END_TEST

START_TEST(test_only_listed_descriptors)
{
    struct proc_fd fds[] = { { .fd = -1, .target = 7 } };
    struct proc_spec none = { .fds = NULL };
    struct proc_spec one = { .fds = fds, .fd_count = 1 };
    int leak = open("/dev/zero", O_RDONLY); /* not close-on-exec */

    ck_assert_int_ge(leak, 3);
    fds[0].fd = leak;
    check_output(&none,
                 "cd /proc/self/fd; for f in 0 2 3 4 5 6 7 8 9; do readlink $f; done; true",
                 "/dev/null\n/dev/null\n");
    check_output(&one, "cd /proc/self/fd; for f in 3 4 5 6 7 8 9; do readlink $f; done; true",
                 "/dev/zero\n");
    closep(&leak);
}
END_TEST

/* Each source is another's target. */
START_TEST(test_descriptors_swap)
{
    struct proc_fd fds[3];
    struct proc_spec spec = { .fds = fds, .fd_count = 2 };
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    char command[100], again[100];

    fds[0] = (struct proc_fd){ .fd = null_fd, .target = zero_fd };
    fds[1] = (struct proc_fd){ .fd = zero_fd, .target = null_fd };
    (void)snprintf(command, sizeof(command), "cd /proc/self/fd; readlink %d; readlink %d",
                   null_fd, zero_fd);
    (void)snprintf(again, sizeof(again), "cd /proc/self/fd; readlink %d", zero_fd);
    check_output(&spec, command, "/dev/zero\n/dev/null\n");
    fds[0] = (struct proc_fd){ .fd = zero_fd, .target = zero_fd }; /* its own number */
    spec = (struct proc_spec){ .fds = fds, .fd_count = 1 };
    check_output(&spec, again, "/dev/zero\n");
    closep(&null_fd);
    closep(&zero_fd);
}
END_TEST

START_TEST(test_signals_are_default)
{
    struct proc_spec spec = { .fds = NULL };
    sigset_t blocked;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGUSR2, SIG_IGN);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
    check_output(&spec, "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr '\\t' ' '",
                 "SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n");
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &blocked), 0); /* ours are as they were */
    ck_assert_int_eq(sigismember(&blocked, SIGTERM), 1);
    ck_assert_int_eq(sigismember(&blocked, SIGINT), 0);
}
END_TEST

START_TEST(test_new_session)
{
    struct proc_spec spec = { .new_session = true };

    check_output(&spec, "test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo leader", "leader\n");
}
END_TEST

static int fails_with_enotty(void *ctx)
{
    return -ENOTTY;
}

static int notes_and_goes_on(void *ctx)
{
    *(int *)ctx = 1; /* in a copy of our memory */
    return prctl(PR_SET_NAME, "hooked", 0, 0, 0) < 0 ? -errno : 0;
}

static int spawn_only(struct proc_spec *spec, const char *program)
{
    const char *const argv[] = { program, NULL };
    pid_t pid = -1;
    int pidfd = -1;
    int result;

    spec->program = program;
    spec->argv = argv;
    result = proc_spawn(spec, &pid, &pidfd);
    if (result == 0) {
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        closep(&pidfd);
    }
    ck_assert_int_eq(pidfd, -1);
    return result;
}

START_TEST(test_failures)
{
    struct proc_fd closed = { .fd = 999, .target = 5 };
    struct proc_fd negative = { .fd = 0, .target = -1 };
    struct proc_spec plain = { .fds = NULL };
    struct proc_spec hook = { .before_exec = fails_with_enotty };
    struct proc_spec directory = { .workdir = "/nonexistent" };
    struct proc_spec bad_fd = { .fds = &closed, .fd_count = 1 };
    struct proc_spec bad_target = { .fds = &negative, .fd_count = 1 };

    ck_assert_int_eq(spawn_only(&plain, "/nonexistent/program"), -ENOENT);
    ck_assert_int_eq(spawn_only(&plain, "no-such-program-anywhere"), -ENOENT);
    ck_assert_int_eq(spawn_only(&plain, "/"), -EACCES);
    ck_assert_int_eq(spawn_only(&plain, ""), -ENOENT);
    ck_assert_int_eq(spawn_only(&hook, "true"), -ENOTTY);
    ck_assert_int_eq(spawn_only(&directory, "true"), -ENOENT);
    ck_assert_int_eq(spawn_only(&bad_fd, "true"), -EBADF);
    ck_assert_int_eq(spawn_only(&bad_target, "true"), -EBADF);
    ck_assert_int_eq(spawn_only(&plain, "true"), 0);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no zombie was left */
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(test_before_exec_has_a_copy)
{
    int touched = 0;
    struct proc_spec spec = { .before_exec = notes_and_goes_on, .before_exec_ctx = &touched };

    check_output(&spec, "echo ran", "ran\n");
    ck_assert_int_eq(touched, 0);
}
END_TEST

static int becomes_nobody(void *ctx)
{
    return syscall(SYS_setresuid, 65534, 65534, 65534) < 0 ? -errno : 0;
}

/* A program in root's home, started as somebody who cannot look into that. */
START_TEST(test_program_in_a_closed_folder)
{
    struct proc_spec spec = { .before_exec = becomes_nobody };
    char folder[] = "/tmp/test-proc-XXXXXX", program[64];

    if (geteuid() != 0)
        return;
    ck_assert_ptr_nonnull(mkdtemp(folder)); /* ours alone */
    (void)snprintf(program, sizeof(program), "%s/true", folder);
    ck_assert_int_eq(symlink("/bin/true", program), 0);
    ck_assert_int_eq(spawn_only(&spec, program), 0);
    ck_assert_int_eq(unlink(program), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* A middle process spawns with die_with_parent and is killed: the grandchild must end. */
START_TEST(test_dies_with_parent)
{
    int pipe_fds[2];
    struct pollfd poll_fd;
    pid_t middle;

    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    middle = fork();
    if (middle == 0) {
        const char *const argv[] = { "sleep", "1000", NULL };
        struct proc_fd fds[] = { { .fd = pipe_fds[1], .target = 1 } };
        struct proc_spec spec = {
            .program = "sleep", .argv = argv, .fds = fds, .fd_count = 1, .die_with_parent = true
        };
        pid_t pid;
        int pidfd;

        if (proc_spawn(&spec, &pid, &pidfd) < 0 || write(pipe_fds[1], "s", 1) != 1)
            _exit(1);
        (void)pause();
    }
    closep(&pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &(char){ 0 }, 1), 1);
    ck_assert_int_eq(kill(middle, SIGKILL), 0);
    ck_assert_int_eq(waitpid(middle, NULL, 0), middle);
    poll_fd = (struct pollfd){ .fd = pipe_fds[0], .events = POLLIN };
    ck_assert_int_eq(poll(&poll_fd, 1, 10000), 1); /* its end of the pipe is gone */
    ck_assert_int_eq(read(pipe_fds[0], &(char){ 0 }, 1), 0);
    closep(&pipe_fds[0]);
}
END_TEST

/* The least of many: what else runs on the machine adds to some and takes from none. */
static double spawn_ms(struct proc_spec *spec)
{
    double least_ms = 1e9;

    for (int i = 0; i < 40; i++) {
        struct timespec before, after;
        double ms;

        (void)clock_gettime(CLOCK_MONOTONIC, &before);
        ck_assert_int_eq(spawn_only(spec, "true"), 0);
        (void)clock_gettime(CLOCK_MONOTONIC, &after);
        ms = (double)(after.tv_sec - before.tv_sec) * 1e3 +
             (double)(after.tv_nsec - before.tv_nsec) / 1e6;
        least_ms = ms < least_ms ? ms : least_ms;
    }
    return least_ms;
}

/* Copying the page tables of 512 MiB costs several ms each time; lending them costs nothing. */
START_TEST(test_big_process_spawns_fast)
{
    const size_t size = 512u * 1024 * 1024;
    struct proc_spec spec = { .fds = NULL };
    double small_ms = spawn_ms(&spec), big_ms;
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    (void)madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += 4096)
        (void)*(volatile uint8_t *)(memory +
                                    i); /* maps the zero page: many entries, no memory */
    big_ms = spawn_ms(&spec);
    ck_assert_msg(big_ms < 4 * small_ms + 1, "%.2f ms small, %.2f ms big", small_ms, big_ms);
    ck_assert_int_eq(munmap(memory, size), 0);
}
END_TEST

START_TEST(test_self_directory)
{
    const char *directory = proc_self_directory();
    char path[4096];

    ck_assert_ptr_nonnull(directory);
    (void)snprintf(path, sizeof(path), "%s/unit-base.proc", directory);
    ck_assert_int_eq(access(path, X_OK), 0);
}
END_TEST

/* Closes STANDARD, holds it, and gives back what it was. */
static void hold(int standard, void (*check)(int standard))
{
    int saved = fcntl(standard, F_DUPFD_CLOEXEC, 3);

    ck_assert_int_ge(saved, 3);
    ck_assert_int_eq(close(standard), 0);
    ck_assert_int_eq(proc_hold_standard_fds(), 0);
    check(standard);
    ck_assert_int_eq(dup2(saved, standard), standard);
    closep(&saved);
}

static void gives_nothing(int standard)
{
    char byte;

    ck_assert_int_eq(read(standard, &byte, 1), 0);
}

static void takes_nothing(int standard)
{
    ck_assert_int_eq(write(standard, "x", 1), -1);
    ck_assert_int_eq(errno, EBADF);
}

START_TEST(test_standard_fds_are_held)
{
    int before, after;

    hold(STDIN_FILENO, gives_nothing);
    hold(STDOUT_FILENO, takes_nothing);
    hold(STDERR_FILENO, takes_nothing);
    before = dup(STDIN_FILENO);
    ck_assert_int_eq(proc_hold_standard_fds(), 0);
    after = dup(STDIN_FILENO);
    ck_assert_int_eq(after, before + 1); /* those that are open stay, nothing is left open */
    closep(&before);
    closep(&after);
}
END_TEST

/* In the loop. */

static void spawn_child(struct loop *loop, const char *command, struct ended *ended)
{
    const char *const argv[] = { "sh", "-c", command, NULL };
    struct proc_spec spec = { .program = "sh", .argv = argv };

    ck_assert_int_eq(loop_spawn(loop, &spec, on_ended, ended, NULL, &ended->child), 0);
}

START_TEST(test_children)
{
    struct ended exits = { 0 }, killed = { 0 }, frees = { .frees = true };
    struct loop *loop;

    ck_assert_int_eq(loop_new(&loop), 0);
    spawn_child(loop, "exit 42", &exits);
    spawn_child(loop, "sleep 1000", &killed);
    spawn_child(loop, "exit 0", &frees);
    TURN_UNTIL(loop, exits.calls && frees.calls);
    ck_assert(WIFEXITED(exits.status) && WEXITSTATUS(exits.status) == 42);
    ck_assert(WIFEXITED(frees.status) && WEXITSTATUS(frees.status) == 0);
    ck_assert_uint_eq(killed.calls, 0);
    ck_assert_int_eq(loop_child_kill(killed.child, SIGTERM), 0);
    TURN_UNTIL(loop, killed.calls);
    ck_assert(WIFSIGNALED(killed.status) && WTERMSIG(killed.status) == SIGTERM);
    ck_assert_int_eq(loop_child_kill(killed.child, SIGTERM), -ESRCH);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* all are reaped */
    loop_child_free(exits.child);
    loop_child_free(killed.child);
    loop_free(loop);
}
END_TEST

START_TEST(test_process_of_another)
{
    struct ended ended = { 0 };
    struct loop *loop;
    int pipe_fds[2], status;
    pid_t middle, grandchild;

    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    middle = fork();
    if (middle == 0) {
        grandchild = fork();
        if (grandchild == 0)
            (void)pause();
        _exit(write(pipe_fds[1], &grandchild, sizeof(grandchild)) == sizeof(grandchild) ? 0
                                                                                        : 1);
    }
    ck_assert_int_eq(read(pipe_fds[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    ck_assert_int_eq(waitpid(middle, &status, 0), middle);
    ck_assert_int_eq(loop_child_new(loop, grandchild, proc_pidfd_open(grandchild), on_ended,
                                    &ended, &ended.child),
                     0);
    ck_assert_int_eq(loop_child_kill(ended.child, SIGKILL), 0);
    TURN_UNTIL(loop, ended.calls);
    ck_assert_int_eq(ended.status, LOOP_CHILD_STATUS_UNKNOWN);
    loop_child_free(ended.child);
    loop_free(loop);
    closep(&pipe_fds[0]);
    closep(&pipe_fds[1]);
}
END_TEST

struct caught {
    unsigned calls;
    int number;
    struct loop_signal *source;
    bool frees;
};

static void on_signal(void *ctx, int signal_number)
{
    struct caught *caught = ctx;

    caught->calls++;
    caught->number = signal_number;
    if (caught->frees)
        loop_signal_free(take_ptr(caught->source));
}

START_TEST(test_signals)
{
    struct caught usr1 = { 0 }, usr2 = { .frees = true };
    struct loop_signal *again = NULL;
    struct loop *loop;

    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(loop_signal_new(loop, SIGUSR1, on_signal, &usr1, &usr1.source), 0);
    ck_assert_int_eq(loop_signal_new(loop, SIGUSR2, on_signal, &usr2, &usr2.source), 0);
    ck_assert_int_eq(loop_signal_new(loop, SIGUSR2, on_signal, &usr2, &again), -EBUSY);
    ck_assert_int_eq(loop_signal_new(loop, 0, on_signal, &usr2, &again), -EINVAL);
    ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
    ck_assert_int_eq(kill(getpid(), SIGUSR2), 0);
    TURN_UNTIL(loop, usr1.calls && usr2.calls);
    ck_assert_int_eq(usr1.number, SIGUSR1);
    ck_assert_int_eq(usr2.number, SIGUSR2);
    ck_assert_int_eq(kill(getpid(), SIGUSR2), 0); /* nobody hears, nobody dies */
    ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
    TURN_UNTIL(loop, usr1.calls == 2);
    ck_assert_uint_eq(usr2.calls, 1);
    loop_signal_free(usr1.source);
    loop_free(loop);
}
END_TEST

UNIT_MAIN("proc", test_environment_and_directory, test_only_listed_descriptors,
          test_descriptors_swap, test_signals_are_default, test_new_session, test_failures,
          test_before_exec_has_a_copy, test_program_in_a_closed_folder, test_dies_with_parent,
          test_big_process_spawns_fast, test_self_directory, test_standard_fds_are_held,
          test_children, test_process_of_another, test_signals)
