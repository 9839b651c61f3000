/* test_report.c - TAP, JUnit, the text for people, differences, and what was never exercised.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "answers.h"
#include "report.h"
#include "unit.h"

static const struct case_file file = { .title = "T <&>", .contract = "5.1" };
static const struct rule rules[] = {
    { .id = "a.pass", .text = "passes" },
    { .id = "a.fail", .text = "fails" },
    { .id = "a.skip", .text = "is skipped" },
};
static struct result results[] = {
    { .file = &file, .rule = &rules[0], .verdict = VERDICT_PASS, .duration_ms = 1234 },
    { .file = &file,
      .rule = &rules[1],
      .verdict = VERDICT_FAIL,
      .why = "got \"1\" < 2\nlog\x01" },
    { .file = &file, .rule = &rules[2], .verdict = VERDICT_SKIP, .why = "no feature" },
};
static char path[] = "/tmp/unit-report.XXXXXX";
static char text[8192];

static void make_file(void)
{
    snprintf(path, sizeof(path), "/tmp/unit-report.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
}

static const char *read_file(void)
{
    FILE *in = fopen(path, "re");
    ck_assert_ptr_nonnull(in);
    text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
    ck_assert_int_eq(fclose(in), 0);
    ck_assert_int_eq(unlink(path), 0);
    return text;
}

/* Everything that is printed from now on can be read. */
static void capture(void)
{
    make_file();
    ck_assert_ptr_nonnull(freopen(path, "w", stdout));
}

static const char *captured(void)
{
    ck_assert_int_eq(fflush(stdout), 0);
    return read_file();
}

static struct suite suite_of_results(void)
{
    return (struct suite){ .results = results, .result_count = ARRAY_SIZE(results) };
}

static void print_all(struct report *report)
{
    struct suite suite = suite_of_results();
    for (size_t i = 0; i < ARRAY_SIZE(results); i++)
        report_result(report, &results[i]);
    report_summary(report, &suite);
}

START_TEST(test_tap)
{
    struct report report = { .tap = true };
    capture();
    print_all(&report);
    ck_assert_str_eq(captured(), "ok 1 - a.pass passes\n"
                                 "not ok 2 - a.fail fails\n"
                                 "# contract 5.1: got \"1\" < 2\n# log\x01\n"
                                 "ok 3 - a.skip is skipped # SKIP no feature\n"
                                 "1..3\n"
                                 "# 1 passed, 1 failed, 1 skipped\n");
}
END_TEST

START_TEST(test_people)
{
    struct report report = { 0 };
    capture();
    print_all(&report);
    const char *out = captured();
    ck_assert_ptr_null(strstr(out, "a.pass"));
    ck_assert_ptr_nonnull(strstr(out, "FAIL a.fail"));
    ck_assert_ptr_nonnull(strstr(out, "skip a.skip"));
    ck_assert_ptr_nonnull(strstr(out, "no feature"));
    ck_assert_ptr_nonnull(strstr(out, "\n1 passed, 1 failed, 1 skipped\n"));
}
END_TEST

START_TEST(test_verbose)
{
    struct report report = { .verbose = true };
    capture();
    print_all(&report);
    ck_assert_ptr_nonnull(strstr(captured(), "pass a.pass"));
}
END_TEST

START_TEST(test_junit)
{
    struct suite suite = suite_of_results();
    make_file();
    ck_assert_int_eq(report_junit(&suite, path), 0);
    const char *out = read_file();
    ck_assert_ptr_nonnull(strstr(out, "tests=\"3\" failures=\"1\" skipped=\"1\""));
    ck_assert_ptr_nonnull(strstr(
        out, "classname=\"T &lt;&amp;&gt;\" name=\"a.pass\" time=\"1.234\"></testcase>"));
    ck_assert_ptr_nonnull(strstr(out, "<failure message=\"got &quot;1&quot; &lt; 2\nlog\"/>"));
    ck_assert_ptr_nonnull(strstr(out, "<skipped message=\"no feature\"/>"));
    ck_assert_int_lt(report_junit(&suite, "/nonexistent/x.xml"), 0);
}
END_TEST

static struct result result_of(enum verdict verdict, const char *transcript)
{
    struct result result = { .file = &file, .rule = &rules[0], .verdict = verdict };
    ck_assert_int_eq(buf_append_text(&result.transcript, transcript), 0);
    return result;
}

static unsigned difference(struct result a, struct result b)
{
    struct suite left = { .results = &a, .result_count = 1 };
    struct suite right = { .results = &b, .result_count = 1 };
    capture();
    unsigned count = report_differences(&left, &right);
    (void)captured();
    buf_done(&a.transcript);
    buf_done(&b.transcript);
    return count;
}

START_TEST(test_differences)
{
    ck_assert_uint_eq(difference(result_of(VERDICT_PASS, "x"), result_of(VERDICT_PASS, "x")),
                      0);
    ck_assert_uint_eq(difference(result_of(VERDICT_PASS, "x"), result_of(VERDICT_PASS, "y")),
                      1);
    ck_assert_uint_eq(difference(result_of(VERDICT_PASS, "x"), result_of(VERDICT_PASS, "")), 1);
    ck_assert_uint_eq(difference(result_of(VERDICT_PASS, "x"), result_of(VERDICT_FAIL, "x")),
                      1);
    ck_assert_uint_eq(difference(result_of(VERDICT_FAIL, "x"), result_of(VERDICT_PASS, "x")),
                      1);
    /* What one of them declares not to have. */
    ck_assert_uint_eq(difference(result_of(VERDICT_SKIP, ""), result_of(VERDICT_PASS, "x")), 0);
}
END_TEST

/* Written by one run and read by another that has a rule more. */
START_TEST(test_answers)
{
    struct result first = result_of(VERDICT_PASS, "{\"a\": 1}\n");
    struct result rows[] = { { .file = &file, .rule = &rules[0] },
                             { .file = &file, .rule = &rules[1] } };
    struct suite mine = { .results = &first, .result_count = 1 };
    struct suite theirs = { .results = rows, .result_count = 2 }, recorded;
    make_file();
    ck_assert_int_eq(answers_write(&mine, path), 0);
    ck_assert_int_eq(answers_read(&theirs, path, &recorded), 0);
    ck_assert_uint_eq(recorded.result_count, 2);
    ck_assert_int_eq(recorded.results[0].verdict, VERDICT_PASS);
    ck_assert_str_eq(buf_text(&recorded.results[0].transcript), "{\"a\": 1}\n");
    ck_assert_int_eq(recorded.results[1].verdict, VERDICT_SKIP);
    suite_done(&recorded);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_lt(answers_read(&theirs, path, &recorded), 0);
    ck_assert_int_lt(answers_write(&mine, "/nonexistent/answers"), 0);
    buf_done(&first.transcript);
}
END_TEST

START_TEST(test_answers_nonsense)
{
    static const char unknown[] = "{\"a.pass\": {\"verdict\": \"good\", \"why\": \"\", "
                                  "\"answers\": \"\"}}";
    static const char *const texts[] = { "", "[]", "{\"a.pass\": 1}", unknown };
    struct result row = { .file = &file, .rule = &rules[0] };
    struct suite theirs = { .results = &row, .result_count = 1 }, recorded;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        make_file();
        FILE *out = fopen(path, "we");
        ck_assert_ptr_nonnull(out);
        ck_assert_int_ge(fputs(texts[i], out), 0);
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_int_lt(answers_read(&theirs, path, &recorded), 0);
        ck_assert_int_eq(unlink(path), 0);
    }
}
END_TEST

/* A rule that the adapter need not pass excuses what only it brings about. */
START_TEST(test_excused)
{
    static const char yaml_text[] = "- { call: 'fs::stat', body: '{}', error: S219 }\n"
                                    "- { finish: C }\n- { call: 'x::fault' }\n";
    struct coverage seen = { 0 }, excused = { 0 };
    struct yaml_node *steps;
    char error[256];
    ck_assert_int_eq(yaml_parse(yaml_text, strlen(yaml_text), &steps, error, sizeof(error)), 0);
    coverage_add_steps(&excused, steps);
    ck_assert(excused.operations[OP_fs_stat]);
    ck_assert(excused.codes[S219]);
    capture();
    ck_assert_uint_eq(coverage_report(&seen, &excused, stdout), OP_MAX + SANDBOX_CODE_MAX - 3);
    ck_assert_ptr_null(strstr(captured(), "S219"));
    yaml_free(steps);
}
END_TEST

START_TEST(test_coverage)
{
    struct coverage coverage = { 0 }, more = { 0 }, excused = { 0 };
    capture();
    ck_assert_uint_eq(coverage_report(&coverage, &excused, stdout),
                      OP_MAX + SANDBOX_CODE_MAX - 1);
    for (int op = 0; op < OP_MAX; op++)
        coverage.operations[op] = true;
    for (int code = 0; code < SANDBOX_CODE_MAX; code++)
        more.codes[code] = true;
    ck_assert_uint_gt(coverage_report(&coverage, &excused, stdout), 0);
    coverage_add(&coverage, &more);
    ck_assert_uint_eq(coverage_report(&coverage, &excused, stdout), 0);
    coverage.operations[OP_fs_chmod] = false;
    coverage.codes[S217] = false;
    ck_assert_uint_eq(coverage_report(&coverage, &excused, stdout), 2);
    const char *out = captured();
    ck_assert_ptr_nonnull(strstr(out, "never exercised: operation fs::chmod"));
    ck_assert_ptr_nonnull(strstr(out, "never exercised: code S217"));
}
END_TEST

UNIT_MAIN("report", test_tap, test_people, test_verbose, test_junit, test_differences,
          test_answers, test_answers_nonsense, test_excused, test_coverage)
