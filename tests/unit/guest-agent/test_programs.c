/* test_programs.c - the cgroup of all programs, in a folder that looks like one. */
#include "programs.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"

#define MIB (1ull << 20)

static char folder[64];

static void make_folder(void)
{
    (void)strcpy(folder, "/tmp/agent-programs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static int open_folder(void)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    return fd;
}

static void put_file(const char *name)
{
    _cleanup_close_ int root_fd = open_folder();
    _cleanup_close_ int fd = openat(root_fd, name, O_CREAT | O_WRONLY | O_APPEND, 0600);

    ck_assert_int_ge(fd, 0);
}

static void check_file(const char *name, const char *wanted)
{
    _cleanup_close_ int root_fd = open_folder();
    _cleanup_close_ int fd = openat(root_fd, name, O_RDONLY);
    char text[64] = "";

    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(read(fd, text, sizeof(text) - 1), 0);
    ck_assert_str_eq(text, wanted);
}

START_TEST(the_limit_goes_with_the_memory)
{
    ck_assert_uint_eq(programs_processes_max(0), PROGRAMS_PROCESSES_MIN);
    ck_assert_uint_eq(programs_processes_max(83 * MIB), 83 * PROGRAMS_PROCESSES_A_MIB);
    ck_assert_uint_eq(programs_processes_max(2048 * MIB), 2048 * PROGRAMS_PROCESSES_A_MIB);
    ck_assert_uint_eq(programs_processes_max(UINT64_MAX), PROGRAMS_PROCESSES_MAX);
}
END_TEST

START_TEST(controllers_and_limit_are_set)
{
    _cleanup_close_ int fd = -1;

    put_file("cgroup.subtree_control");
    {
        _cleanup_close_ int root_fd = open_folder();

        ck_assert_int_eq(mkdirat(root_fd, "programs", 0755), 0);
    }
    put_file("programs/pids.max");
    fd = programs_open(open_folder(), 100 * MIB);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(faccessat(fd, "pids.max", F_OK, 0), 0);
    check_file("cgroup.subtree_control", "+pids"); /* the later one in a plain file */
    check_file("programs/pids.max", "300");
}
END_TEST

START_TEST(without_controllers_there_is_still_a_folder)
{
    _cleanup_close_ int fd = programs_open(open_folder(), 100 * MIB);
    struct stat opened, made;
    char path[96];

    ck_assert_int_ge(fd, 0);
    (void)snprintf(path, sizeof(path), "%s/programs", folder);
    ck_assert_int_eq(stat(path, &made), 0);
    ck_assert_int_eq(fstat(fd, &opened), 0);
    ck_assert_uint_eq(opened.st_ino, made.st_ino);
}
END_TEST

START_TEST(without_cgroups_there_is_none)
{
    ck_assert_int_eq(programs_open(-1, 100 * MIB), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent-programs");
    TCase *cases = tcase_create("agent-programs");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_test(cases, the_limit_goes_with_the_memory);
    tcase_add_test(cases, controllers_and_limit_are_set);
    tcase_add_test(cases, without_controllers_there_is_still_a_folder);
    tcase_add_test(cases, without_cgroups_there_is_none);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
