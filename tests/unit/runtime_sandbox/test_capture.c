/* test_capture.c - the ends of an output stream (contract 3.5, 5.2.7). */
#include "capture.h"

#include <string.h>

#include "unit.h"

static void add(struct capture *capture, const char *text)
{
    capture_add(capture, (const uint8_t *)text, strlen(text));
}

static void expect_text(size_t cap, const char *const *parts, const char *wanted,
                        bool truncated)
{
    struct capture capture;
    struct buf text = { 0 };

    capture_init(&capture, cap);
    for (; *parts; parts++)
        add(&capture, *parts);
    ck_assert_int_eq(capture_text(&capture, &text), 0);
    ck_assert_str_eq(buf_text(&text), wanted);
    ck_assert_int_eq(capture_truncated(&capture), truncated);
    capture_done(&capture);
    buf_done(&text);
}

#define PARTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

START_TEST(test_cap)
{
    expect_text(5, PARTS(""), "", false);
    expect_text(5, PARTS("hello"), "hello", false);
    expect_text(5, PARTS("hello", "!"), "hello", true);
    expect_text(5, PARTS("hel", "lo, world"), "hello", true);
    expect_text(1, PARTS("ab"), "a", true);
}
END_TEST

START_TEST(test_split_character_is_dropped_whole)
{
    expect_text(4, PARTS("ab\u20ac"), "ab", true);  /* 2 of its 3 bytes fit */
    expect_text(3, PARTS("ab\u20acx"), "ab", true); /* 1 fits */
    expect_text(5, PARTS("ab\u20acx"), "ab\u20ac", true);
    expect_text(4, PARTS("a\U0001F600"), "a", true);
    expect_text(4, PARTS("ab\xe2", "\x82", "\xac"), "ab", true);
}
END_TEST

START_TEST(test_cut_through_what_is_no_character)
{
    expect_text(4, PARTS("ab\xe2\x82x"), "ab\ufffd", true);
    expect_text(3, PARTS("ab\xe2x"), "ab\ufffd", true);
    expect_text(3, PARTS("ab\xffx"), "ab\ufffd", true);
    expect_text(3, PARTS("ab\xe2"), "ab\ufffd", false);
    expect_text(4, PARTS("ab\x80\x80\x80"), "ab\ufffd\ufffd", true);
}
END_TEST

START_TEST(test_joined_across_reads)
{
    expect_text(100, PARTS("a\xe2", "\x82", "\xac!"), "a\u20ac!", false);
    expect_text(100, PARTS("a\xf0\x9f", "x"), "a\ufffdx", false);
}
END_TEST

static void expect_tail(struct capture *capture, const char *wanted, size_t size,
                        bool truncated)
{
    struct buf text = { 0 };
    bool cut;

    ck_assert_int_eq(capture_tail_text(capture, &text, &cut), 0);
    ck_assert_uint_eq(text.size, size);
    ck_assert_int_eq(memcmp(text.data, wanted, size), 0);
    ck_assert_int_eq(cut, truncated);
    buf_done(&text);
}

/* Byte i is a letter that depends on i. */
static char *letters(size_t size)
{
    char *text = malloc(size + 1);

    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + i % 23);
    text[size] = 0;
    return text;
}

START_TEST(test_tail_of_short_streams)
{
    struct capture capture;

    capture_init(&capture, 4);
    add(&capture, "0123456789");
    expect_tail(&capture, "0123456789", 10, false);
    capture_done(&capture);
}
END_TEST

START_TEST(test_tail_whatever_the_cap_and_the_chunks)
{
    static const size_t caps[] = { 1, 100, CAPTURE_TAIL_BYTES, 1 << 20 };
    static const size_t chunks[] = { 1000, 65536, 300000 };
    size_t total = 250000;
    char *text = letters(total);

    for (size_t i = 0; i < ARRAY_SIZE(caps) * ARRAY_SIZE(chunks); i++) {
        size_t chunk = chunks[i % ARRAY_SIZE(chunks)];
        struct capture capture;

        capture_init(&capture, caps[i / ARRAY_SIZE(chunks)]);
        for (size_t at = 0; at < total; at += chunk)
            capture_add(&capture, (uint8_t *)text + at,
                        total - at < chunk ? total - at : chunk);
        expect_tail(&capture, text + total - CAPTURE_TAIL_BYTES, CAPTURE_TAIL_BYTES, true);
        ck_assert_uint_lt(capture.tail.capacity, 512 * 1024);
        capture_done(&capture);
    }
    free(text);
}
END_TEST

START_TEST(test_tail_begins_behind_a_split_character)
{
    char *text = letters(CAPTURE_TAIL_BYTES - 1);
    struct capture capture;

    capture_init(&capture, 10);
    add(&capture, "xx\u20ac"); /* its last byte is within the tail */
    add(&capture, text);
    expect_tail(&capture, text, CAPTURE_TAIL_BYTES - 1, true);
    capture_done(&capture);
    free(text);
}
END_TEST

UNIT_MAIN("capture", test_cap, test_split_character_is_dropped_whole,
          test_cut_through_what_is_no_character, test_joined_across_reads,
          test_tail_of_short_streams, test_tail_whatever_the_cap_and_the_chunks,
          test_tail_begins_behind_a_split_character)
