/* test_log.c - lines that stay lines whatever is in their values. */
#include "log.h"
#include "log_relay.h"

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

#define RELAYED(line) CAPTURE(ck_assert(log_relay("two", line, strlen(line))))

/* What one process writes is in the log of another as if that had written it, in either format.
 */
START_TEST(test_relayed_lines)
{
    static const char key_value[] = "ts=2026-01-02T03:04:05.678Z level=warn prog=one "
                                    "event=it_happened who=\"a \\\"b\\\\\\u000a\" "
                                    "n=-5 big=18446744073709551615 none=-";
    static const char json[] =
        "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"prog\":\"one\",\"event\":"
        "\"it_happened\",\"who\":\"a \\\"b\\\\\\u000a\",\"n\":-5,\"big\":18446744073709551615,"
        "\"none\":\"-\"}";
    char wanted[512];

    log_init("unit", LOG_FORMAT_KEY_VALUE, LOG_INFO);
    (void)snprintf(wanted, sizeof(wanted), "%s\n", key_value);
    memcpy(strstr(wanted, "prog=one"), "prog=two", 8);
    ck_assert_str_eq(RELAYED(key_value), wanted);
    ck_assert_ptr_nonnull(strstr(RELAYED(json), " prog=two event=it_happened who=\"a \\\"b"));
    log_init("unit", LOG_FORMAT_JSON, LOG_INFO);
    (void)snprintf(wanted, sizeof(wanted), "%s\n", json);
    memcpy(strstr(wanted, "\"one\""), "\"two\"", 5);
    ck_assert_str_eq(RELAYED(json), wanted);
    ck_assert_str_eq(RELAYED(key_value), wanted);
}
END_TEST

START_TEST(test_relayed_levels)
{
    log_init("unit", LOG_FORMAT_KEY_VALUE, LOG_WARN);
    ck_assert_str_eq(RELAYED("ts=2026-01-02T03:04:05.678Z level=info prog=a event=e"), "");
    ck_assert_str_ne(RELAYED("ts=2026-01-02T03:04:05.678Z level=error prog=a event=e"), "");
}
END_TEST

#define HEAD "ts=2026-01-02T03:04:05.678Z level=warn prog=a event=e"
#define JSON_HEAD                                                                              \
    "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"prog\":\"a\",\"event\":\"e\""

static const char *const no_lines[] = {
    "",
    " ",
    "plain text",
    "=",
    "ts=",
    "a=b",
    "level=warn ts=2026-01-02T03:04:05.678Z prog=a event=e",
    "ts=2026-01-02T03:04:05.678Z level=loud prog=a event=e",
    "ts=yesterday level=warn prog=a event=e",
    "ts=2026-01-02T03:04:05.678Z level=warn prog=a event=E!",
    "ts=2026-01-02T03:04:05.678Z level=warn prog=a",
    HEAD " ",
    HEAD "  a=b",
    HEAD " a",
    HEAD " A=b",
    HEAD " a=",
    HEAD " a=b\"c",
    HEAD " a=\"b",
    HEAD " a=\"b\\",
    HEAD " a=\"b\"c",
    HEAD " a=\"\\q\"",
    HEAD " a=\"\\u0000\"",
    HEAD " a=\"\xff\"",
    HEAD " a=\"\x01\"",
    "ts=2026-01-02T03:04:05Z0 level=warn prog=a event=e",
    "ts=2026-01-02T03:04:05.678Z level=warn prog=a event=5",
    "{",
    "{}",
    "{\"ts\":\"\",\"level\":\"warn\",\"prog\":\"a\",\"event\":\"e\"}",
    "{\"ts\":\"-\",\"level\":\"warn\",\"prog\":\"a\",\"event\":\"e\"}",
    "{\"ts\":\"5\",\"level\":\"warn\",\"prog\":\"a\",\"event\":\"e\"}",
    "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"prog\":\"a\",\"event\":"
    "\"\"}",
    "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"prog\":\"a\",\"event\":"
    "\"5\"}",
    JSON_HEAD ",\"\":\"a\"}",
    "{\"ts\":1}",
    JSON_HEAD,
    JSON_HEAD ",\"a\":[]}",
    JSON_HEAD ",\"a\":true}",
    JSON_HEAD ",\"a b\":1}",
    JSON_HEAD ",\"a\":\"\\u0000\"}",
};

/* All that is not a line of a log is left to the caller. */
START_TEST(test_no_lines_of_a_log)
{
    char many[1024] = HEAD;

    log_init("unit", LOG_FORMAT_KEY_VALUE, LOG_DEBUG);
    for (size_t i = 0; i < ARRAY_SIZE(no_lines); i++) {
        bool told = false;
        const char *line = CAPTURE(told = log_relay("two", no_lines[i], strlen(no_lines[i])));

        ck_assert_msg(!told && line[0] == '\0', "told: %s", no_lines[i]);
    }
    for (int i = 0; i < 40; i++)
        (void)strcat(many, " a=1");
    ck_assert(!log_relay("two", many, strlen(many)));
    ck_assert(!log_relay("two words", HEAD, strlen(HEAD)));
    ck_assert(!log_relay("", HEAD, strlen(HEAD)));
    ck_assert(!log_relay("two", HEAD "\0", sizeof(HEAD)));
}
END_TEST

UNIT_MAIN("log", test_relayed_lines, test_relayed_levels, test_no_lines_of_a_log,
          test_key_value_line, test_json_line, test_levels, test_nothing_forges_a_line,
          test_long_values_are_cut, test_many_fields)
