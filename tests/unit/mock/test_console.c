/* test_console.c - the tail of standard error. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "console.h"
#include "unit.h"

static struct loop *loop;
static struct console *console;
static int fd;

static void start(void)
{
    ck_assert_int_eq(loop_new(&loop), 0);
    ck_assert_int_eq(console_new(loop, &console, &fd), 0);
}

static void stop(void)
{
    console_free(console);
    loop_free(loop);
}

START_TEST(test_short_text_is_whole)
{
    start();
    ck_assert_str_eq(console_tail(console), "");
    ck_assert_int_eq(write(fd, "one\ntwo", 7), 7);
    ck_assert_str_eq(console_tail(console), "one\ntwo");
    (void)close(fd);
    ck_assert_str_eq(console_tail(console), "one\ntwo");
    stop();
}
END_TEST

START_TEST(test_lines_are_limited)
{
    start();
    for (int i = 0; i < 100; i++)
        dprintf(fd, "line %d\n", i);
    ck_assert_int_eq(strncmp(console_tail(console), "line 68\n", 8), 0);
    (void)close(fd);
    stop();
}
END_TEST

START_TEST(test_bytes_are_limited)
{
    char data[1000];

    memset(data, 'x', sizeof(data));
    start();
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(write(fd, data, sizeof(data)), sizeof(data));
        ck_assert_uint_le(strlen(console_tail(console)), CONSOLE_BYTES_MAX);
    }
    ck_assert_uint_eq(strlen(console_tail(console)), CONSOLE_BYTES_MAX);
    memset(data, 0xff, sizeof(data)); /* each byte becomes three */
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(write(fd, data, sizeof(data)), sizeof(data));
        ck_assert_uint_le(strlen(console_tail(console)), CONSOLE_BYTES_MAX);
    }
    (void)close(fd);
    stop();
}
END_TEST

UNIT_MAIN("mock.console", test_short_text_is_whole, test_lines_are_limited,
          test_bytes_are_limited)
