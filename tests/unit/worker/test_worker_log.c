/* test_worker_log.c - the last 1 MiB of what the scripts of a worker wrote. */
#include "unit.h"
#include "utf8.h"
#include "worker_log.h"

#include <stdio.h>
#include <string.h>

static struct worker_log log_;

static void add(unsigned stream, const char *text)
{
    worker_log_add(&log_, stream, (const uint8_t *)text, strlen(text));
}

static void expect(size_t tail_bytes, const char *text, bool truncated)
{
    struct buf buf = { 0 };
    bool cut;

    ck_assert_int_eq(worker_log_tail(&log_, tail_bytes, &buf, &cut), 0);
    ck_assert_str_eq(buf_text(&buf), text);
    ck_assert_int_eq(cut, truncated);
    buf_done(&buf);
}

START_TEST(test_tail)
{
    ck_assert_int_eq(worker_log_init(&log_, "/tmp"), 0);
    expect(10, "", false);
    add(1, "one ");
    add(2, "two ");
    add(1, "three");
    expect(100, "one two three", false);
    expect(13, "one two three", false);
    expect(5, "three", true);
    expect(0, "", true);
    worker_log_done(&log_);
}
END_TEST

START_TEST(test_characters)
{
    ck_assert_int_eq(worker_log_init(&log_, "/tmp"), 0);
    add(1, "a\xe2\x82");
    add(2, "x\n"); /* between the parts of a character of the other stream */
    add(1, "\xac"
           "b");
    expect(100,
           "ax\n\xe2\x82\xac"
           "b",
           false);
    expect(3, "b", true); /* never from inside a character */
    expect(4,
           "\xe2\x82\xac"
           "b",
           true);
    add(1, "\xff");
    expect(100,
           "ax\n\xe2\x82\xac"
           "b\xef\xbf\xbd",
           false);
    expect(2, "", true); /* repaired it would not fit */
    worker_log_done(&log_);
}
END_TEST

START_TEST(test_torn_end)
{
    ck_assert_int_eq(worker_log_init(&log_, "/tmp"), 0);
    add(2, "end\xe2");
    expect(100, "end", false);
    worker_log_flush(&log_, 2);
    expect(100, "end\xef\xbf\xbd", false);
    worker_log_done(&log_);
}
END_TEST

/* Each line tells its number; what is left is the end, whole and in order. */
START_TEST(test_ring)
{
    struct buf buf = { 0 };
    bool cut, same = true;
    char line[16];

    ck_assert_int_eq(worker_log_init(&log_, "/tmp"), 0);
    for (unsigned i = 0; i < 300000; i++) {
        (void)snprintf(line, sizeof(line), "%06u\n", i);
        add(1 + i % 2, line);
    }
    ck_assert_int_eq(worker_log_tail(&log_, LIMIT_WORKER_LOG_BYTES, &buf, &cut), 0);
    ck_assert(cut);
    ck_assert_uint_eq(buf.size, LIMIT_WORKER_LOG_BYTES);
    for (unsigned i = 0; i < LIMIT_WORKER_LOG_BYTES / 7; i++) {
        (void)snprintf(line, sizeof(line), "%06u\n", 300000 - 1 - i);
        same = same && memcmp(buf.data + buf.size - (i + 1) * 7, line, 7) == 0;
    }
    ck_assert(same);
    buf_done(&buf);
    worker_log_done(&log_);
}
END_TEST

START_TEST(test_one_large)
{
    static uint8_t data[3 * LIMIT_WORKER_LOG_BYTES];
    struct buf buf = { 0 };
    bool cut;

    ck_assert_int_eq(worker_log_init(&log_, "/tmp"), 0);
    memset(data, 'a', sizeof(data));
    memcpy(data + sizeof(data) - 3, "end", 3);
    worker_log_add(&log_, 1, data, sizeof(data));
    ck_assert_int_eq(worker_log_tail(&log_, LIMIT_WORKER_LOG_BYTES, &buf, &cut), 0);
    ck_assert_uint_eq(buf.size, LIMIT_WORKER_LOG_BYTES);
    ck_assert_int_eq(memcmp(buf.data + buf.size - 4, "aend", 4), 0);
    buf_done(&buf);
    worker_log_done(&log_);
}
END_TEST

/* A disk that takes nothing loses the log, not the worker. */
START_TEST(test_no_file)
{
    ck_assert_int_lt(worker_log_init(&log_, "/nonexistent"), 0);
    add(1, "lost");
    expect(10, "", false);
    worker_log_done(&log_);
}
END_TEST

UNIT_MAIN("worker_log", test_tail, test_characters, test_torn_end, test_ring, test_one_large,
          test_no_file)
