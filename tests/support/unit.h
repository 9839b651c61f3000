/* unit.h - the main() of a unit test: one suite, run case by case, each in a process of its
 * own. */
#pragma once

#include <check.h>
#include <stdlib.h>

/* A test that runs once for each of its ROWS, with the row's index in `_i`; 0: once, it has
 * none. */
struct unit_test {
    const TTest *test;
    int rows;
};

/* What each test begins and ends with; both NULL: nothing. */
struct unit_scene {
    void (*open)(void);
    void (*close)(void);
};

static inline int unit_run_in(struct unit_scene scene, const char *name,
                              const struct unit_test *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *test_case = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(test_case, scene.open, scene.close);
    for (size_t i = 0; i < count; i++) {
        if (tests[i].rows > 0)
            tcase_add_loop_test(test_case, tests[i].test, 0, tests[i].rows);
        else
            tcase_add_test(test_case, tests[i].test);
    }
    suite_add_tcase(suite, test_case);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define UNIT_MAX 64

static inline int unit_run_plain(struct unit_scene scene, const char *name,
                                 const TTest *const *tests, size_t count)
{
    struct unit_test rows[UNIT_MAX] = { 0 };

    if (count > UNIT_MAX)
        return EXIT_FAILURE;
    for (size_t i = 0; i < count; i++)
        rows[i].test = tests[i];
    return unit_run_in(scene, name, rows, count);
}

static inline int unit_run(const char *name, const TTest *const *tests, size_t count)
{
    return unit_run_plain((struct unit_scene){ NULL, NULL }, name, tests, count);
}

/* UNIT_MAIN("buf", test_append, test_limit) */
#define UNIT_MAIN(name, ...)                                                                   \
    int main(void)                                                                             \
    {                                                                                          \
        const TTest *const tests[] = { __VA_ARGS__ };                                          \
        return unit_run(name, tests, sizeof(tests) / sizeof(tests[0]));                        \
    }

/* UNIT_MAIN_IN(fixture_open, fixture_close, "fs", test_read, test_write) */
#define UNIT_MAIN_IN(open, close, name, ...)                                                   \
    int main(void)                                                                             \
    {                                                                                          \
        const TTest *const tests[] = { __VA_ARGS__ };                                          \
        return unit_run_plain((struct unit_scene){ open, close }, name, tests,                 \
                              sizeof(tests) / sizeof(tests[0]));                               \
    }

/* UNIT_MAIN_ROWS("source", UNIT_TEST(test_kinds), UNIT_ROWS(test_bad, bad_texts)) */
#define UNIT_TEST(test)                                                                        \
    {                                                                                          \
        test, 0                                                                                \
    }
#define UNIT_ROWS(test, table)                                                                 \
    {                                                                                          \
        test, (int)(sizeof(table) / sizeof((table)[0]))                                        \
    }
#define UNIT_MAIN_ROWS(name, ...)                                                              \
    int main(void)                                                                             \
    {                                                                                          \
        const struct unit_test tests[] = { __VA_ARGS__ };                                      \
        return unit_run_in((struct unit_scene){ NULL, NULL }, name, tests,                     \
                           sizeof(tests) / sizeof(tests[0]));                                  \
    }
