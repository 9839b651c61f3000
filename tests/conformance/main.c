/* main.c - sandbox-conformance: options, runs, exit code. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "answers.h"
#include "options.h"
#include "proc.h"

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
                                 .sources = options->sources ? options->sources : "",
                                 .subject = options->subject,
                                 .image = options->image,
                                 .sets = options->sets,
                                 .set_count = options->set_count,
                                 .jobs = options->jobs,
                                 .only = options->only,
                                 .report = report_result,
                                 .ctx = &options->report };
    options->report.count = 0;
    if (adapter)
        ret_suite->subject.adapter = adapter;
    return suite_run(ret_suite);
}

static int complain(const char *path, int error)
{
    if (error < 0)
        fprintf(stderr, "sandbox-conformance: %s: %s\n", path, strerror(-error));
    return error;
}

/* The files that were asked for. 0, or negative when one cannot be written. */
static int write_files(const struct options *options, const struct suite *suite)
{
    int junit = options->junit ? complain(options->junit, report_junit(suite, options->junit))
                               : 0;
    int answers = options->answers
                      ? complain(options->answers, answers_write(suite, options->answers))
                      : 0;
    return junit < 0 ? junit : answers;
}

/* How many rules differ from those of the file; negative when it cannot be read. */
static int count_differences(const struct options *options, const struct suite *suite)
{
    struct suite recorded;
    if (!options->against)
        return 0;
    int ret = complain(options->against, answers_read(suite, options->against, &recorded));
    if (ret < 0)
        return ret;
    ret = (int)report_differences(&recorded, suite);
    suite_done(&recorded);
    return ret;
}

/* 0 or 1, the exit code. */
static int hold(struct options *options, const struct case_list *cases)
{
    struct suite suite;
    if (run(options, cases, NULL, &suite) < 0)
        return 1;
    report_summary(&options->report, &suite);
    bool whole = !options->only && !options->partial && !options->subject.router_url;
    unsigned missing = whole ? coverage_report(&suite.coverage, &suite.excused, stdout) : 0;
    int files = write_files(options, &suite);
    int differences = count_differences(options, &suite);
    bool failed = suite_count(&suite, VERDICT_FAIL) > 0 || missing > 0 || files < 0 ||
                  differences != 0 || suite.result_count == 0;
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

/* NULL: there is none. */
static char *find_sources(const char *cases)
{
    _cleanup_free_ char *path = NULL;
    if (asprintf(&path, "%s/../sources", cases) < 0)
        return NULL;
    return realpath(path, NULL);
}

/* Installed: beside the program's folder. In a build folder: those of the source tree. */
static void find_cases(const char *folder, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/" INSTALLED_CASES, folder ? folder : ".");
    if (access(ret_path, R_OK | X_OK) < 0)
        snprintf(ret_path, size, "%s", CASES_DIRECTORY);
}

int main(int argc, char **argv)
{
    struct options options = { .image = "python", .jobs = 8 };
    char router[4096], cases_folder[4096], error[1024];
    if (!options_read(argc, argv, &options)) {
        fputs(options_usage, stderr);
        return 2;
    }
    const char *folder = proc_self_directory();
    snprintf(router, sizeof(router), "%s/sandbox-router", folder ? folder : ".");
    find_cases(folder, cases_folder, sizeof(cases_folder));
    if (!options.cases)
        options.cases = cases_folder;
    _cleanup_free_ char *sources = find_sources(options.cases);
    options.sources = sources;
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
