/* main.c - sandbox-conformance: options, runs, exit code. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "proc.h"
#include "report.h"

#define SETS_MAX 32

struct options {
    struct subject_options subject;
    const char *image;
    size_t set_count;
    const char *compare_a;
    const char *compare_b;
    const char *cases;
    const char *only;
    const char *junit;
    const char *section_file;
    const char *sets[SETS_MAX];
    struct report report;
    bool partial;
};

static const char usage[] =
    "usage: sandbox-conformance --adapter PROGRAM | --router URL | --compare PROGRAM PROGRAM\n"
    "  --cases DIR      case files (default: beside the program, then the installed ones)\n"
    "  --only PREFIX    only rules whose id begins so\n"
    "  --image NAME     image to boot (default python)\n"
    "  --set KEY=VALUE  a line of sandbox.settings\n"
    "  --section FILE   YAML put below `sandbox`\n"
    "  --tap            TAP on stdout\n"
    "  --junit FILE     JUnit XML\n"
    "  --partial        operations and codes that were never seen are no failure\n"
    "  --verbose        passed rules too, and the log of router and adapter\n";

static bool take_option(struct options *options, int option, char **argv)
{
    switch (option) {
    case 'a':
        options->subject.adapter = optarg;
        return true;
    case 'r':
        options->subject.router_url = optarg;
        return true;
    case 'c':
        options->compare_a = optarg;
        options->compare_b = argv[optind] ? argv[optind++] : NULL;
        return options->compare_b != NULL;
    case 'd':
        options->cases = optarg;
        return true;
    case 'o':
        options->only = optarg;
        return true;
    case 'i':
        options->image = optarg;
        return true;
    case 's':
        if (!strchr(optarg, '=') || options->set_count == SETS_MAX)
            return false;
        options->sets[options->set_count++] = optarg;
        return true;
    case 'f':
        options->section_file = optarg;
        return true;
    case 't':
        options->report.tap = true;
        return true;
    case 'j':
        options->junit = optarg;
        return true;
    case 'p':
        options->partial = true;
        return true;
    case 'v':
        options->report.verbose = options->subject.verbose = true;
        return true;
    default:
        return false;
    }
}

static bool read_options(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        { "adapter", required_argument, NULL, 'a' },
        { "router", required_argument, NULL, 'r' },
        { "compare", required_argument, NULL, 'c' },
        { "cases", required_argument, NULL, 'd' },
        { "only", required_argument, NULL, 'o' },
        { "image", required_argument, NULL, 'i' },
        { "set", required_argument, NULL, 's' },
        { "section", required_argument, NULL, 'f' },
        { "tap", no_argument, NULL, 't' },
        { "junit", required_argument, NULL, 'j' },
        { "partial", no_argument, NULL, 'p' },
        { "verbose", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (!take_option(options, option, argv))
            return false;
    }
    int ways = (options->subject.adapter != NULL) + (options->subject.router_url != NULL) +
               (options->compare_a != NULL);
    return optind == argc && ways == 1;
}

static char *read_section(const char *path)
{
    _cleanup_(buf_done)
    struct buf text = { .limit = 1 << 20 };
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    char chunk[4096];
    size_t count;
    while ((count = fread(chunk, 1, sizeof(chunk), file)) > 0 &&
           buf_append(&text, chunk, count) == 0)
        ;
    (void)fclose(file); /* read only */
    return (char *)buf_take(&text, &count);
}

static int run(struct options *options, const struct case_list *cases, const char *adapter,
               struct suite *ret_suite)
{
    *ret_suite = (struct suite){ .cases = cases,
                                 .subject = options->subject,
                                 .image = options->image,
                                 .sets = options->sets,
                                 .set_count = options->set_count,
                                 .only = options->only,
                                 .report = report_result,
                                 .ctx = &options->report };
    options->report.count = 0;
    if (adapter)
        ret_suite->subject.adapter = adapter;
    return suite_run(ret_suite);
}

/* 0 or 1, the exit code. */
static int hold(struct options *options, const struct case_list *cases)
{
    struct suite suite;
    if (run(options, cases, NULL, &suite) < 0)
        return 1;
    report_summary(&options->report, &suite);
    bool whole = !options->only && !options->partial && !options->subject.router_url;
    unsigned missing = whole ? coverage_report(&suite.coverage, suite.has_workers, stdout) : 0;
    int junit = options->junit ? report_junit(&suite, options->junit) : 0;
    if (junit < 0)
        fprintf(stderr, "sandbox-conformance: %s: %s\n", options->junit, strerror(-junit));
    bool failed = suite_count(&suite, VERDICT_FAIL) > 0 || missing > 0 || junit < 0 ||
                  suite.result_count == 0;
    suite_done(&suite);
    return failed;
}

static int compare(struct options *options, const struct case_list *cases)
{
    struct suite a, b;
    int ret = run(options, cases, options->compare_a, &a);
    if (ret == 0)
        ret = run(options, cases, options->compare_b, &b);
    if (ret < 0)
        return 1;
    unsigned count = report_differences(&a, &b);
    bool failed = count > 0 || a.result_count == 0;
    suite_done(&a);
    suite_done(&b);
    return failed;
}

int main(int argc, char **argv)
{
    struct options options = { .image = "python", .cases = CASES_DIRECTORY };
    char router[4096], error[1024];
    if (!read_options(argc, argv, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    const char *folder = proc_self_directory();
    snprintf(router, sizeof(router), "%s/sandbox-router", folder ? folder : ".");
    options.subject.router_program = router;
    _cleanup_free_ char *section = options.section_file ? read_section(options.section_file)
                                                        : NULL;
    if (options.section_file && !section) {
        fprintf(stderr, "sandbox-conformance: cannot read %s\n", options.section_file);
        return 2;
    }
    options.subject.section = section;
    struct case_list cases;
    if (case_list_load(options.cases, &cases, error, sizeof(error)) < 0) {
        fprintf(stderr, "sandbox-conformance: %s\n", error);
        return 2;
    }
    int code = options.compare_a ? compare(&options, &cases) : hold(&options, &cases);
    case_list_done(&cases);
    return code;
}
