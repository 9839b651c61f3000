/* unit.h - the main() of a unit test: one suite, run case by case, each in a process of its
 * own. */
#pragma once

#include <check.h>
#include <stdlib.h>

static inline int unit_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *test_case = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    for (size_t i = 0; i < count; i++)
        tcase_add_test(test_case, tests[i]);
    suite_add_tcase(suite, test_case);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* UNIT_MAIN("buf", test_append, test_limit) */
#define UNIT_MAIN(name, ...)                                                                   \
    int main(void)                                                                             \
    {                                                                                          \
        const TTest *const tests[] = { __VA_ARGS__ };                                          \
        return unit_run(name, tests, sizeof(tests) / sizeof(tests[0]));                        \
    }
