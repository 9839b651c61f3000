/* test_install_output.c - the lines of an installer, in any pieces. */
#include "install_output.h"
#include "unit.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

static char said[1024];

static void on_progress(void *ctx, const char *stage, uint64_t bytes, uint64_t total_bytes)
{
    (void)snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s %llu %llu;", stage,
                   (unsigned long long)bytes, (unsigned long long)total_bytes);
}

#define LONG_LINE_BYTES 10000

static const struct {
    const char *text;
    const char *said;
    bool done;
} outputs[] = {
    { "progress pulling 10 100\nprogress unpacking 7\ndone\n", "pulling 10 100;unpacking 7 0;",
      true },
    { "done\nprogress x 1\n", "x 1 0;", false },
    { "done", "", false },
    { "done\n\n", "", false },
    { "done \n", "", false },
    { "progress\nprogress \nprogress x\nprogress x y\nprogress  1\n", "", false },
    { "progress x -1\nprogress x +1\nprogress x 1 y\nprogress x 1 2 3\nprogress x 1x\n", "",
      false },
    { "progress x 18446744073709551615\nprogress x 18446744073709551616\n",
      "x 18446744073709551615 0;", false },
    { "progress a-stage-whose-name-is-longer-than-any-that-an-error-has-room-for 1\n", "",
      false },
};

START_TEST(test_outputs)
{
    for (size_t piece = 1; piece < 30; piece += 7) {
        struct install_output output = { .progress = on_progress };
        size_t size = strlen(outputs[_i].text);

        said[0] = '\0';
        for (size_t at = 0; at < size; at += piece)
            install_output_take(&output, outputs[_i].text + at,
                                size - at < piece ? size - at : piece);
        ck_assert_str_eq(said, outputs[_i].said);
        ck_assert_int_eq(output.done, outputs[_i].done);
        install_output_done(&output);
    }
}
END_TEST

START_TEST(test_long_lines_are_ignored)
{
    struct install_output output = { .progress = on_progress };
    char line[LONG_LINE_BYTES];

    said[0] = '\0';
    memset(line, 'x', sizeof(line));
    install_output_take(&output, "done\n", 5);
    for (int i = 0; i < 100; i++)
        install_output_take(&output, line, sizeof(line));
    ck_assert_uint_le(output.line.capacity, 2 * LONG_LINE_BYTES);
    install_output_take(&output, "\n", 1);
    ck_assert(!output.done);
    install_output_take(&output, "progress y 2\n", 13);
    ck_assert_str_eq(said, "y 2 0;");
    install_output_done(&output);
}
END_TEST

START_TEST(test_last_errors)
{
    struct install_errors errors = { 0 };
    char line[LONG_LINE_BYTES];

    ck_assert_str_eq(install_errors_text(&errors), "");
    for (int i = 1; i <= 20; i++) {
        int size = snprintf(line, sizeof(line), "line %d\n", i);

        install_errors_take(&errors, line, (size_t)size);
    }
    ck_assert_str_eq(install_errors_text(&errors),
                     "line 15\nline 16\nline 17\nline 18\nline 19\nline 20");
    memset(line, 'z', sizeof(line));
    install_errors_take(&errors, line, sizeof(line));
    ck_assert_uint_le(strlen(install_errors_text(&errors)), 1024);
    install_errors_done(&errors);
}
END_TEST

START_TEST(test_errors_are_text)
{
    static const char odd[] = "name \x1b[31m\0\r\x7f\xff\xc3 \xe2\xa8\xaf";
    struct install_errors errors = { 0 };
    char line[LONG_LINE_BYTES];

    install_errors_take(&errors, odd, sizeof(odd) - 1);
    ck_assert_str_eq(install_errors_text(&errors),
                     "name ?[31m???\xef\xbf\xbd\xef\xbf\xbd \xe2\xa8\xaf");
    ck_assert_str_eq(install_errors_text(&errors), install_errors_text(&errors));
    /* bytes that are none of UTF-8's grow, and a character is not cut */
    memset(line, 0xa2, sizeof(line));
    install_errors_take(&errors, line, sizeof(line));
    install_errors_take(&errors, "!", 1);
    ck_assert_uint_le(strlen(install_errors_text(&errors)), 1024);
    ck_assert_uint_gt(strlen(install_errors_text(&errors)), 1000);
    ck_assert(utf8_valid(install_errors_text(&errors), strlen(install_errors_text(&errors))));
    install_errors_done(&errors);
}
END_TEST

UNIT_MAIN_ROWS("install_output", UNIT_ROWS(test_outputs, outputs),
               UNIT_TEST(test_long_lines_are_ignored), UNIT_TEST(test_last_errors),
               UNIT_TEST(test_errors_are_text))
