/* fs_scene.c - see fs_scene.h. */
#include "fs_scene.h"

#include <stdio.h>
#include <stdlib.h>

char fs_root[] = "/tmp/agent-fs-XXXXXX";
char text[8192];
struct sandbox_error err;

char *at(const char *relative)
{
    static char paths[16][4200];
    static unsigned next;
    char *path = paths[next++ % 16];

    (void)snprintf(path, sizeof(paths[0]), "%s%s%s", fs_root, *relative ? "/" : "", relative);
    return path;
}

void shell(const char *script)
{
    (void)snprintf(text, sizeof(text), "cd %s && { %s; }", fs_root, script);
    ck_assert_msg(system(text) == 0, "%s", text);
}

static void fs_start(void)
{
    (void)strcpy(fs_root, "/tmp/agent-fs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fs_root));
    (void)umask(022);
    err = (struct sandbox_error){ 0 };
}

static void fs_stop(void)
{
    (void)snprintf(text, sizeof(text), "rm -rf %s", fs_root);
    ck_assert_int_eq(system(text), 0);
}

void content(const char *relative, const char *expected)
{
    static char data[65536];
    FILE *file = fopen(at(relative), "r");
    size_t size;

    ck_assert_ptr_nonnull(file);
    size = fread(data, 1, sizeof(data) - 1, file);
    data[size] = 0;
    (void)fclose(file);
    ck_assert_str_eq(data, expected);
}

bool there(const char *relative)
{
    struct stat status;

    return lstat(at(relative), &status) == 0;
}

mode_t mode_of(const char *relative)
{
    struct stat status;

    ck_assert_int_eq(lstat(at(relative), &status), 0);
    return status.st_mode & 07777;
}

int fs_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, fs_start, fs_stop);
    tcase_set_timeout(cases, 120);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
