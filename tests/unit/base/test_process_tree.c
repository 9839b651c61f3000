/* test_process_tree.c - no descendant survives. */
#include "proc.h"
#include "process_tree.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

/* A pipe whose write end is held by every process of the tree: it ends when the last one does.
 */
static void expect_all_gone(const char *script)
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    int pipe_fds[2], pidfd, status;
    char ready[2];
    pid_t pid;

    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    const struct proc_fd fds[] = { { pipe_fds[1], 1 } };

    ck_assert_int_eq(
        proc_spawn(
            &(struct proc_spec){
                .program = "sh", .argv = argv, .fds = fds, .fd_count = 1, .new_session = true },
            &pid, &pidfd),
        0);
    close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], ready, 2), 2);
    process_tree_kill(pid);
    struct pollfd waited = { .fd = pipe_fds[0], .events = POLLIN };

    ck_assert_int_eq(poll(&waited, 1, 5000), 1);
    ck_assert_int_eq(read(pipe_fds[0], ready, 1), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(pipe_fds[0]);
    close(pidfd);
}

START_TEST(test_children)
{
    expect_all_gone("sleep 600 & sleep 600 & echo 1; wait");
}
END_TEST

START_TEST(test_other_sessions)
{
    expect_all_gone("setsid sh -c 'setsid sleep 600 & echo 1; wait' & wait");
}
END_TEST

START_TEST(test_orphans_of_the_session)
{
    expect_all_gone(
        "sh -c 'sleep 600 & sh -c \"sleep 600 & sleep 600 &\" &'; echo 1; sleep 600");
}
END_TEST

START_TEST(test_stopped_ones)
{
    expect_all_gone("sleep 600 & kill -STOP $!; echo 1; wait");
}
END_TEST

UNIT_MAIN("process_tree", test_children, test_other_sessions, test_orphans_of_the_session,
          test_stopped_ones)
