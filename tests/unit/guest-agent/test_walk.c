/* test_walk.c - the walk below rm, chmod, grep and sed (contract 8.1), while the tree changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs_scene.h"
#include "walk.h"

/* The entries, one a word; before the one that is called AT, SCRIPT changes the tree. */
static void expect_walk(const char *before, const char *script, const char *expected)
{
    char seen[512] = "";
    struct walk *walk = NULL;
    struct walk_entry entry;
    int result;

    ck_assert_int_eq(walk_open(open(at(""), O_RDONLY | O_DIRECTORY), "/r", &walk), 0);
    while ((result = walk_next(walk, &entry)) == 1) {
        static const char marks[] = {
            [WALK_FILE] = ' ', [WALK_ENTER] = '(', [WALK_LEAVE] = ')', [WALK_MOUNT] = '!'
        };
        size_t size = strlen(seen);

        (void)snprintf(seen + size, sizeof(seen) - size, "%s%c", entry.relative,
                       marks[entry.kind]);
        if (strcmp(seen, before) == 0)
            shell(script);
    }
    ck_assert_int_eq(result, 0);
    ck_assert_str_eq(seen, expected);
    walk_free(walk);
}

START_TEST(whole)
{
    shell("mkdir -p b/d; touch a b/c b/d/e f; ln -s b g");
    expect_walk("-", "true", "a b(b/c b/d(b/d/e b/d)b)f g ");
}
END_TEST

START_TEST(what_vanishes_is_skipped)
{
    shell("mkdir b c; touch a b/x b/y b/z c/w d");
    expect_walk("a ", "rm -r c d", "a b(b/x b/y b/z b)");
    shell("mkdir c; touch c/w d");
    expect_walk("a b(b/x ", "rm b/y c/w; rmdir c", "a b(b/x b/z b)d ");
    shell("mkdir c; touch b/y");
    /* The folder that it is in: what it has open is empty then. */
    expect_walk("a b(", "rm -r b", "a b(b)c(c)d ");
}
END_TEST

START_TEST(what_takes_its_place)
{
    shell("mkdir b c; touch a b/x c/y");
    expect_walk("a ", "rm -r b; touch b; rm -r c; ln -s b c", "a b c ");
    shell("rm b c; mkdir b; touch b/x c");
    expect_walk("a ", "rm c; mkdir c; touch c/new", "a b(b/x b)c(c/new c)");
}
END_TEST

/* Its folder is still there; some of those in it cannot be read any more. */
START_TEST(an_ended_process)
{
    struct walk *walk = NULL;
    struct walk_entry entry;
    siginfo_t ended;
    char path[32];
    pid_t pid = fork();
    int result;

    if (pid == 0)
        _exit(0);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    ck_assert_int_eq(walk_open(open(path, O_RDONLY | O_DIRECTORY), path, &walk), 0);
    while ((result = walk_next(walk, &entry)) == 1)
        ;
    ck_assert_int_eq(result, 0);
    walk_free(walk);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

FS_MAIN("walk", whole, what_vanishes_is_skipped, what_takes_its_place, an_ended_process)
