/* test_text.c - the pure parts of text work: globs, patterns, templates, lines (contract 8.12,
 * 8.13). */
#include <check.h>
#include <string.h>
#include <sys/mman.h>

#include "glob.h"
#include "lines.h"
#include "pattern.h"
#include "template.h"

START_TEST(globs_match)
{
    static const struct {
        const char *glob;
        const char *relative;
        bool matches;
    } cases[] = {
        { "*.py", "a.py", true },
        { "*.py", "deep/er/a.py", true },
        { "*.py", "a.pyc", false },
        { "*", ".hidden", true },
        { "?", "é", true },
        { "??", "é", false },
        { "a*b*c", "axxbyyc", true },
        { "a*b*c", "axxbyy", false },
        { "src/*.c", "src/a.c", true },
        { "src/*.c", "src/x/a.c", false },
        { "src/*.c", "x/src/a.c", false },
        { "src/?.c", "src//.c", false },
        { "**", "any/thing", true },
        { "**/a.c", "a.c", true },
        { "**/a.c", "x/y/a.c", true },
        { "**/src/*.c", "src/a.c", true },
        { "**/src/*.c", "x/src/a.c", true },
        { "**/src/*.c", "x/src/y/a.c", false },
        { "**/*.c", "x/a.c", true },
        { "src/**", "src/a", true },
        { "src/**", "src/a/b", false },
        { "a**b", "axb", true },
        { "[a]", "a", false },
        { "[a]", "[a]", true },
        { "\\*", "\\x", true },
        { "{a,b}", "a", false },
        { "", "a", false },
        { "*/*", "a/b", true },
        { "*/*", "a", false },
        { "a?c", "a/c", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        ck_assert_msg(glob_match(cases[i].glob, cases[i].relative) == cases[i].matches,
                      "%s on %s", cases[i].glob, cases[i].relative);
}
END_TEST

START_TEST(globs_include_and_exclude)
{
    char *include[] = { (char *)(uintptr_t) "*.c", (char *)(uintptr_t) "*.h" };
    char *exclude[] = { (char *)(uintptr_t) "test_*" };
    const struct text_list all = { 0 }, in = { .count = 2, .items = include },
                           out = { .count = 1, .items = exclude };

    ck_assert(globs_choose(&all, &all, "x"));
    ck_assert(globs_choose(&in, &all, "a/b.h"));
    ck_assert(!globs_choose(&in, &all, "a/b.o"));
    ck_assert(!globs_choose(&in, &out, "a/test_b.c"));
    ck_assert(globs_choose(&all, &out, "a/b.c"));
}
END_TEST

START_TEST(globs_have_limits)
{
    static char *items[GLOBS_MAX + 1];
    static char longest[GLOB_BYTES_MAX + 2];
    struct text_list globs = { .count = GLOBS_MAX, .items = items };
    struct sandbox_error err = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(items); i++)
        items[i] = (char *)(uintptr_t) "*";
    memset(longest, 'a', GLOB_BYTES_MAX);
    items[0] = longest;
    ck_assert_int_eq(globs_check("include_glob", &globs, &err), 0);
    globs.count++;
    ck_assert_int_eq(globs_check("include_glob", &globs, &err), -1);
    ck_assert_int_eq(err.code, S210);
    err = (struct sandbox_error){ 0 };
    globs.count = 1;
    longest[GLOB_BYTES_MAX] = 'a';
    ck_assert_int_eq(globs_check("include_glob", &globs, &err), -1);
    ck_assert_int_eq(err.code, S210);
}
END_TEST

static struct blob blob(const char *text)
{
    return (struct blob){ .data = (char *)(uintptr_t)text, .size = strlen(text) };
}

/* First match of TEXT in LINE: its start, or -1 none, -2 an error (in *err). */
static int find(const char *text, bool literal, bool ignore_case, const char *line,
                struct sandbox_error *err)
{
    const struct pattern_spec spec = {
        .text = blob(text),
        .literal = literal,
        .ignore_case = ignore_case,
    };
    const struct pattern_subject subject = { .text = line, .size = strlen(line) };
    _cleanup_(pattern_freep)
    struct pattern *pattern = NULL;
    size_t start, end;
    int found;

    if (pattern_new(&spec, NULL, &pattern, err) < 0)
        return -2;
    found = pattern_match(pattern, &subject, err);
    if (found < 0)
        return -2;
    if (found == 0)
        return -1;
    ck_assert(pattern_group(pattern, 0, &start, &end));
    return (int)start;
}

START_TEST(patterns_find)
{
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(find("b+", false, false, "aabb", &err), 2);
    ck_assert_int_eq(find("É", false, true, "xé", &err), 1);
    ck_assert_int_eq(find("\\w+", false, false, "é", &err), 0);
    ck_assert_int_eq(find("^b", false, false, "a\nb", &err), -1);
    ck_assert_int_eq(find("(?m)^b", false, false, "a\nb", &err), 2);
    ck_assert_int_eq(find("a$", false, false, "a\n", &err), 0);
    ck_assert_int_eq(find("$.", true, false, "a$.", &err), 1);
    ck_assert_int_eq(find("$A.", true, true, "x$a.", &err), 1);
    ck_assert_int_eq(err.code, SANDBOX_OK);
}
END_TEST

static void check_refused(const char *text, const char *line, const char *words)
{
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(find(text, false, false, line, &err), -2);
    ck_assert_int_eq(err.code, S217);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(patterns_that_are_refused)
{
    check_refused("a(b", "", "offset 3");
    check_refused("\\C", "", "\\C");
    check_refused("(x+x+)+[yz]", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "limit");
}
END_TEST

START_TEST(long_patterns)
{
    static char text[PATTERN_BYTES_MAX + 2];
    struct sandbox_error err = { 0 };

    memset(text, 'a', PATTERN_BYTES_MAX);
    ck_assert_int_eq(find(text, true, false, text, &err), 0);
    text[PATTERN_BYTES_MAX] = 'a';
    ck_assert_int_eq(find(text, true, false, text, &err), -2);
    ck_assert_int_eq(err.code, S217);
}
END_TEST

START_TEST(a_match_deep_in_a_long_line)
{
    const size_t size = 4 * 1024 * 1024;
    char *line = malloc(size + 1);
    struct sandbox_error err = { 0 };

    memset(line, 'a', size);
    memcpy(line + size - 3, "é", 2);
    line[size] = 0;
    ck_assert_int_eq(find("é", false, false, line, &err), (int)size - 3);
    ck_assert_int_eq(find("(?<=a)éa$", false, false, line, &err), (int)size - 3);
    ck_assert_int_eq(find("b", false, false, line, &err), -1);
    free(line);
}
END_TEST

/* However a pattern says where it can begin, a long line is looked through once. */
START_TEST(a_long_line_is_looked_through_once)
{
    static const char *const texts[] = {
        "tail",       "(?i)TAIL", "[tx]ail", "[^a\\n]ail$", "(?m)^tail$", "(*ANYCRLF)(?m)^tail",
        "\\btail\\b",
    };
    static const char end[] = "\n\r\ntail";
    const size_t size = 16 * 1024 * 1024;
    char *line = malloc(size + sizeof(end));
    struct sandbox_error err = { 0 };

    ck_assert_ptr_nonnull(line);
    memset(line, 'a', size);
    memcpy(line + size, end, sizeof(end));
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        int found = find(texts[i], false, false, line, &err);

        ck_assert_msg(found == (int)(size + 3) || found == (int)(size + 1), "%s: %d %s",
                      texts[i], found, err.message);
    }
    line[size] = 0;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        ck_assert_int_eq(find(texts[i], false, false, line, &err), -1);
    free(line);
}
END_TEST

/* Behind a match the search goes on in the middle of a line. */
START_TEST(a_search_goes_on)
{
    static const struct {
        const char *text, *line;
        size_t from;
        int start;
    } cases[] = {
        { ".*?b", "ab ab", 2, 2 },   { "(?m)^b", "ab\nb", 1, 3 }, { "(?m)^b", "bb", 1, -1 },
        { "[éx]", "éaéx", 2, 3 },    { "a", "aAa", 1, 2 },        { "(?i)a", "abA", 1, 2 },
        { "(?<=a)b", "abab", 2, 3 }, { "", "abc", 2, 2 },         { ".*", "a\nb", 1, 1 },
        { "b$", "ab\nb", 2, 3 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct pattern_spec spec = { .text = blob(cases[i].text) };
        const struct pattern_subject subject = { .text = cases[i].line,
                                                 .size = strlen(cases[i].line),
                                                 .from = cases[i].from };
        struct sandbox_error err = { 0 };
        struct pattern *pattern = NULL;
        size_t start = 0, end;

        ck_assert_int_eq(pattern_new(&spec, NULL, &pattern, &err), 0);
        ck_assert_int_eq(pattern_match(pattern, &subject, &err), cases[i].start >= 0);
        ck_assert(cases[i].start < 0 || pattern_group(pattern, 0, &start, &end));
        ck_assert_msg(cases[i].start < 0 || start == (size_t)cases[i].start, "%s in %s",
                      cases[i].text, cases[i].line);
        pattern_free(pattern);
    }
}
END_TEST

/* The template's text for the first match of PATTERN in LINE; or "S217". */
static const char *expand(const char *text, const char *expression, const char *line)
{
    static struct buf out;
    const struct pattern_spec spec = { .text = blob(expression) };
    const struct pattern_subject subject = { .text = line, .size = strlen(line) };
    const struct blob replacement = blob(text);
    _cleanup_(pattern_freep)
    struct pattern *pattern = NULL;
    _cleanup_(template_freep)
    struct template *template = NULL;
    struct sandbox_error err = { 0 };
    struct span piece;
    size_t cursor = 0;

    buf_done(&out);
    ck_assert_int_eq(pattern_new(&spec, NULL, &pattern, &err), 0);
    if (template_new(&replacement, false, pattern, &template, &err) < 0)
        return error_info_get(err.code)->code;
    ck_assert_int_eq(pattern_match(pattern, &subject, &err), 1);
    while (template_next(template, pattern, line, &cursor, &piece))
        ck_assert_int_eq(buf_append(&out, piece.data, piece.size), 0);
    return buf_text(&out);
}

START_TEST(templates_expand)
{
    static const char expression[] = "(?<first>a)(b)?(c)";

    ck_assert_str_eq(expand("[$0]", expression, "xacx"), "[ac]");
    ck_assert_str_eq(expand("$1-$2-$3", expression, "ac"), "a--c");
    ck_assert_str_eq(expand("${1}0${first}$first", expression, "ac"), "a0aa");
    ck_assert_str_eq(expand("$$1 \\1 $ $", expression, "ac"), "$1 \\1 $ $");
    ck_assert_str_eq(expand("$-", expression, "ac"), "$-");
    ck_assert_str_eq(expand("$10", expression, "ac"), "S217");
    ck_assert_str_eq(expand("${10}", expression, "ac"), "S217");
    ck_assert_str_eq(expand("$99999999999999999999", expression, "ac"), "S217");
    ck_assert_str_eq(expand("$first_", expression, "ac"), "S217");
    ck_assert_str_eq(expand("${first", expression, "ac"), "S217");
    ck_assert_str_eq(expand("${}", expression, "ac"), "S217");
    ck_assert_str_eq(expand("", expression, "ac"), "");
    ck_assert_str_eq(expand("$n", "(?J)(?<n>x)|(?<n>y)", "y"), "y");
}
END_TEST

static int file_of(const void *data, size_t size)
{
    int fd = memfd_create("lines", MFD_CLOEXEC);

    ck_assert_int_eq(write(fd, data, size), (ssize_t)size);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

START_TEST(lines_of_a_file)
{
    int fd = file_of("one\n\nlast", 9);
    struct lines lines;
    struct line line;

    lines_init(&lines, fd);
    ck_assert_int_eq(lines_begin_with_nul(&lines, 8192), 0);
    ck_assert_int_eq(lines_next(&lines, &line), 1);
    ck_assert_uint_eq(line.size, 4);
    ck_assert_int_eq(lines_next(&lines, &line), 1);
    ck_assert_uint_eq(line.size, 1);
    ck_assert_uint_eq(line.offset, 4);
    ck_assert_int_eq(lines_next(&lines, &line), 1);
    ck_assert_uint_eq(line.size, 4);
    ck_assert_int_eq(memcmp(line.text, "last", 4), 0);
    ck_assert_int_eq(lines_next(&lines, &line), 0);
    lines_done(&lines);
    (void)close(fd);
}
END_TEST

START_TEST(lines_have_a_limit)
{
    const size_t size = LINE_BYTES_MAX + 2;
    char *data = malloc(size);
    struct lines lines;
    struct line line;
    int fd;

    memset(data, 'x', size);
    data[LINE_BYTES_MAX] = '\n';
    fd = file_of(data, LINE_BYTES_MAX + 1);
    lines_init(&lines, fd);
    ck_assert_int_eq(lines_next(&lines, &line), 1);
    ck_assert_uint_eq(line.size, LINE_BYTES_MAX + 1);
    lines_done(&lines);
    (void)close(fd);
    data[LINE_BYTES_MAX] = 'x';
    data[LINE_BYTES_MAX + 1] = '\n';
    fd = file_of(data, size);
    lines_init(&lines, fd);
    ck_assert_int_lt(lines_next(&lines, &line), 0);
    lines_done(&lines);
    (void)close(fd);
    free(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent-text");
    TCase *cases = tcase_create("text");
    SRunner *runner;
    int failed;

    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, globs_match);
    tcase_add_test(cases, globs_include_and_exclude);
    tcase_add_test(cases, globs_have_limits);
    tcase_add_test(cases, patterns_find);
    tcase_add_test(cases, patterns_that_are_refused);
    tcase_add_test(cases, long_patterns);
    tcase_add_test(cases, a_match_deep_in_a_long_line);
    tcase_add_test(cases, a_long_line_is_looked_through_once);
    tcase_add_test(cases, a_search_goes_on);
    tcase_add_test(cases, templates_expand);
    tcase_add_test(cases, lines_of_a_file);
    tcase_add_test(cases, lines_have_a_limit);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
