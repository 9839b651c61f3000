/* test_options.c - the command line. */
#include <getopt.h>
#include <string.h>

#include "options.h"
#include "unit.h"

#define WORDS_MAX 32

/* LINE is cut at its spaces, in place. */
static bool takes(char *line, struct options *ret_options)
{
    char *argv[WORDS_MAX] = { "sandbox-conformance" };
    int argc = 1;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    *ret_options = (struct options){ 0 };
    optind = 0; /* getopt starts anew */
    opterr = 0;
    return options_read(argc, argv, ret_options);
}

START_TEST(test_taken)
{
    struct options options;
    char line[] = "--adapter A --cases C --only fs. --image node --set a=1 --set b=2 --jobs 7 "
                  "--tap --junit J";
    ck_assert(takes(line, &options));
    ck_assert_str_eq(options.subject.adapter, "A");
    ck_assert_str_eq(options.cases, "C");
    ck_assert_str_eq(options.only, "fs.");
    ck_assert_str_eq(options.image, "node");
    ck_assert_uint_eq(options.set_count, 2);
    ck_assert_uint_eq(options.jobs, 7);
    ck_assert(options.report.tap);
    ck_assert_str_eq(options.junit, "J");
}
END_TEST

START_TEST(test_compare)
{
    struct options options;
    char line[] = "--compare A B --partial";
    ck_assert(takes(line, &options));
    ck_assert_str_eq(options.compare_a, "A");
    ck_assert_str_eq(options.compare_b, "B");
    ck_assert(options.partial);
}
END_TEST

START_TEST(test_refused)
{
    static const char *const lines[] = {
        "",
        "--adapter A --router R",
        "--compare A",
        "--adapter A rest",
        "--adapter A --set nonsense",
        "--adapter A --jobs 0",
        "--adapter A --jobs 99",
        "--adapter A --jobs 2x",
        "--adapter A --unknown",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct options options;
        char line[128];
        snprintf(line, sizeof(line), "%s", lines[i]);
        ck_assert_msg(!takes(line, &options), "%s", lines[i]);
    }
}
END_TEST

UNIT_MAIN("options", test_taken, test_compare, test_refused)
