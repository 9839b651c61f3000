/* test_buf.c - growth, limits, views and moves of a buf. */
#include "buf.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

START_TEST(test_append_and_text)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };

    ck_assert_str_eq(buf_text(&buf), "");
    ck_assert_int_eq(buf_append(&buf, "ab\0c", 4), 0);
    ck_assert_int_eq(buf_append_byte(&buf, 'd'), 0);
    ck_assert_int_eq(buf_append_text(&buf, "ef"), 0);
    ck_assert_int_eq(buf_append(&buf, NULL, 0), 0);
    ck_assert_uint_eq(buf.size, 7);
    ck_assert_mem_eq(buf.data, "ab\0cdef", 7);
    ck_assert_int_eq(buf_text(&buf)[7], 0);
    ck_assert_uint_eq(buf.size, 7);
}
END_TEST

START_TEST(test_printf)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };
    char expected[600];

    memset(expected, 'x', sizeof(expected) - 1);
    expected[sizeof(expected) - 1] = 0;
    ck_assert_int_eq(buf_printf(&buf, "%d-", 7), 0);
    ck_assert_int_eq(buf_printf(&buf, "%s", expected), 0);
    ck_assert_uint_eq(buf.size, 2 + strlen(expected));
    ck_assert_str_eq(buf_text(&buf) + 2, expected);
}
END_TEST

START_TEST(test_limit_changes_nothing)
{
    _cleanup_(buf_done)
    struct buf buf = { .limit = 5 };

    ck_assert_int_eq(buf_append_text(&buf, "abcd"), 0);
    ck_assert_int_eq(buf_append_text(&buf, "ef"), -ENOBUFS);
    ck_assert_int_eq(buf_printf(&buf, "%d", 12), -ENOBUFS);
    ck_assert_ptr_null(buf_reserve(&buf, 2));
    ck_assert_int_eq(buf_ensure(&buf, SIZE_MAX), -ENOBUFS);
    ck_assert_str_eq(buf_text(&buf), "abcd");
    ck_assert_int_eq(buf_append_byte(&buf, 'e'), 0);
    ck_assert_str_eq(buf_text(&buf), "abcde");
    ck_assert_uint_le(buf.capacity, 6);
}
END_TEST

START_TEST(test_consume)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };

    ck_assert_int_eq(buf_append_text(&buf, "abcdef"), 0);
    buf_consume(&buf, 0);
    buf_consume(&buf, 2);
    ck_assert_str_eq(buf_text(&buf), "cdef");
    buf_consume(&buf, 4);
    ck_assert_uint_eq(buf.size, 0);
    ck_assert_int_eq(buf_append_text(&buf, "xy"), 0);
    buf_consume(&buf, 100);
    ck_assert_uint_eq(buf.size, 0);
}
END_TEST

START_TEST(test_reserve_then_add)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };

    for (unsigned i = 0; i < 1000; i++) {
        uint8_t *place = buf_reserve(&buf, 3);

        ck_assert_ptr_nonnull(place);
        memcpy(place, "123", 3);
        buf.size += 3;
    }
    ck_assert_uint_eq(buf.size, 3000);
    ck_assert_uint_le(buf.capacity, 8192);
    ck_assert_mem_eq(buf.data + 2997, "123", 3);
}
END_TEST

START_TEST(test_take)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };
    _cleanup_free_ uint8_t *first = NULL;
    _cleanup_free_ uint8_t *empty = NULL;
    size_t size = 99;

    ck_assert_int_eq(buf_append_text(&buf, "moved"), 0);
    first = buf_take(&buf, &size);
    ck_assert_uint_eq(size, 5);
    ck_assert_str_eq((char *)first, "moved");
    ck_assert_ptr_null(buf.data);
    empty = buf_take(&buf, &size);
    ck_assert_uint_eq(size, 0);
    ck_assert_str_eq((char *)empty, "");
}
END_TEST

UNIT_MAIN("buf", test_append_and_text, test_printf, test_limit_changes_nothing, test_consume,
          test_reserve_then_add, test_take)
