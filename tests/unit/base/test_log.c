/* test_log.c - lines that stay lines whatever is in their values. */
#include "log.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "unit.h"

/* Standard error goes to a file; gives what EXPRESSION logged, behind its time stamp. */
static char output[65536];

static int capture_begin(int *ret_saved)
{
    int file = memfd_create("log", MFD_CLOEXEC);

    ck_assert_int_ge(file, 0);
    *ret_saved = dup(STDERR_FILENO);
    ck_assert_int_eq(dup2(file, STDERR_FILENO), STDERR_FILENO);
    return file;
}

static const char *capture_end(int file, int saved)
{
    ssize_t size = pread(file, output, sizeof(output) - 1, 0);

    ck_assert_int_ge(size, 0);
    output[size] = 0;
    ck_assert_int_eq(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    (void)close(saved);
    (void)close(file);
    return output;
}

#define CAPTURE(expression)                                                                    \
    ({                                                                                         \
        int saved_;                                                                            \
        int file_ = capture_begin(&saved_);                                                    \
        expression;                                                                            \
        capture_end(file_, saved_);                                                            \
    })

START_TEST(test_key_value_line)
{
    const char *line;

    log_init("unit", LOG_FORMAT_KEY_VALUE, LOG_INFO);
    line = CAPTURE(log_event(LOG_WARN, "it_happened", log_text("who", "a b"), log_int("n", -5),
                             log_uint("big", UINT64_MAX), log_text("none", NULL)));
    ck_assert_int_eq(strncmp(line, "ts=20", 5), 0);
    ck_assert_int_eq(line[strlen("ts=2026-01-02T03:04:05.678")], 'Z');
    ck_assert_str_eq(strchr(line, ' '),
                     " level=warn prog=unit event=it_happened who=\"a b\" n=-5 "
                     "big=18446744073709551615 none=-\n");
}
END_TEST

START_TEST(test_json_line)
{
    const char *line;

    log_init("unit", LOG_FORMAT_JSON, LOG_INFO);
    line = CAPTURE(log_event(LOG_ERROR, "e", log_text("t", "q\"\\\n"), log_int("n", 1),
                             log_text("none", NULL)));
    ck_assert_int_eq(strncmp(line, "{\"ts\":\"20", 9), 0);
    ck_assert_str_eq(strstr(line, "\"level\""),
                     "\"level\":\"error\",\"prog\":\"unit\",\"event\":\"e\","
                     "\"t\":\"q\\\"\\\\\\u000a\",\"n\":1,\"none\":\"-\"}\n");
}
END_TEST

START_TEST(test_levels)
{
    log_init("unit", LOG_FORMAT_KEY_VALUE, LOG_WARN);
    ck_assert_str_eq(CAPTURE(log_event(LOG_INFO, "quiet", log_int("n", 1))), "");
    ck_assert(log_enabled(LOG_ERROR));
    ck_assert(!log_enabled(LOG_DEBUG));
}
END_TEST

START_TEST(test_nothing_forges_a_line)
{
    static const char hostile[] = "x\" event=forged\r\n\x1B[2J\x7F\xC2\x85\xE2\x80\xA8\xFF\xC3";
    const char *line;

    log_init("unit", LOG_FORMAT_KEY_VALUE, LOG_INFO);
    line = CAPTURE(log_event(LOG_INFO, "e", log_text("v", hostile)));
    ck_assert_str_eq(strstr(line, " v="),
                     " v=\"x\\\" event=forged\\u000d\\u000a\\u001b[2J\\u007f\\u0085\\u2028"
                     "\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
}
END_TEST

static void check_cut(enum log_format format, const char *end)
{
    static char huge[20000];
    const char *line;
    size_t size;

    memset(huge, '"', sizeof(huge) - 1); /* each is escaped to two bytes */
    log_init("unit", format, LOG_INFO);
    for (size_t length = 3900; length < 4200; length++) {
        huge[length] = 0;
        line = CAPTURE(log_event(LOG_INFO, "e", log_text("v", huge), log_int("n", 1),
                                 log_text("after", "x")));
        size = strlen(line);
        ck_assert_uint_le(size, 8192);
        ck_assert_ptr_eq(strchr(line, '\n'), line + size - 1);
        if (strstr(line, "\xE2\x80\xA6"))
            ck_assert_str_eq(line + size - strlen(end), end);
        huge[length] = '"';
    }
    ck_assert_ptr_nonnull(strstr(output, "\xE2\x80\xA6"));
}

START_TEST(test_long_values_are_cut)
{
    check_cut(LOG_FORMAT_KEY_VALUE, "\xE2\x80\xA6\"\n");
    check_cut(LOG_FORMAT_JSON, "\xE2\x80\xA6\"}\n");
}
END_TEST

START_TEST(test_many_fields)
{
    struct log_field fields[200];
    const char *line;

    log_init("unit", LOG_FORMAT_JSON, LOG_INFO);
    for (unsigned i = 0; i < 200; i++)
        fields[i] = i % 2 ? log_uint("a_rather_long_key_for_a_number", i)
                          : log_text("a_rather_long_key_for_a_text", "and its value");
    line = CAPTURE(log_write(LOG_INFO, "e", fields, 200));
    ck_assert_uint_le(strlen(line), 8192);
    ck_assert_str_eq(line + strlen(line) - 2, "}\n");
}
END_TEST

UNIT_MAIN("log", test_key_value_line, test_json_line, test_levels, test_nothing_forges_a_line,
          test_long_values_are_cut, test_many_fields)
