/* test_utf8.c - validity, repair, cuts and white space. */
#include "utf8.h"

#include <string.h>

#include "unit.h"

#define R "\xEF\xBF\xBD"

static void check_repair(const char *text, size_t size, const char *expected)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };

    ck_assert_int_eq(utf8_repair(&buf, text, size), 0);
    ck_assert_str_eq(buf_text(&buf), expected);
}

START_TEST(test_valid)
{
    static const char *const good[] = { "", "plain ASCII, longer than a word",
                                        "\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xEF\xBF\xBF",
                                        "\xED\x9F\xBF \xEE\x80\x80",
                                        "\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF" };
    static const char *const bad[] = {
        "\x80",             /* continuation alone */
        "\xC0\x80",         /* overlong NUL */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xED\xA0\x80",     /* surrogate */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xF4\x90\x80\x80", /* over U+10FFFF */
        "\xF5\x80\x80\x80",
        "\xFF",
        "twelve chars\xE2\x82",
        "\xC2",
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        ck_assert_msg(utf8_valid(good[i], strlen(good[i])), "good[%zu]", i);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        ck_assert_msg(!utf8_valid(bad[i], strlen(bad[i])), "bad[%zu]", i);
    ck_assert(utf8_valid("a\0b", 3));
}
END_TEST

/* The examples of the Unicode standard, section 3.9, tables 3-8 to 3-11. */
START_TEST(test_repair_maximal_subparts)
{
    check_repair("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", 9, R R R R R R R R "A");
    check_repair("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", 9, R R R R R R R R "A");
    check_repair("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", 9, R R R R R "A" R R "B");
    check_repair("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", 9, R R R R "A");
}
END_TEST

START_TEST(test_repair_edges)
{
    _cleanup_(buf_done)
    struct buf buf = { 0 };

    check_repair("", 0, "");
    check_repair("good \xE2\x82\xAC text", 13, "good \xE2\x82\xAC text");
    check_repair("cut \xE2\x82", 6, "cut " R);
    ck_assert_int_eq(utf8_repair_cut(&buf, "cut \xE2\x82", 6), 0);
    ck_assert_str_eq(buf_text(&buf), "cut ");
    buf_clear(&buf);
    ck_assert_int_eq(utf8_repair_cut(&buf, "bad \x82\xF0\x9F\x98", 8), 0);
    ck_assert_str_eq(buf_text(&buf), "bad " R);
    buf_clear(&buf);
    ck_assert_int_eq(utf8_repair_cut(&buf, "\xE0\x80", 2), 0); /* can never become whole */
    ck_assert_str_eq(buf_text(&buf), R R);
}
END_TEST

START_TEST(test_complete_size)
{
    ck_assert_uint_eq(utf8_complete_size("abc", 3), 3);
    ck_assert_uint_eq(utf8_complete_size("a\xE2\x82\xAC", 4), 4);
    ck_assert_uint_eq(utf8_complete_size("a\xE2\x82", 3), 1);
    ck_assert_uint_eq(utf8_complete_size("a\xE2", 2), 1);
    ck_assert_uint_eq(utf8_complete_size("a\xF0\x9F\x98", 4), 1);
    ck_assert_uint_eq(utf8_complete_size("\xF0", 1), 0);
    ck_assert_uint_eq(utf8_complete_size("\x80\x80\x80\x80", 4), 4);
    ck_assert_uint_eq(utf8_complete_size("a\xFF", 2), 2);
    ck_assert_uint_eq(utf8_complete_size("", 0), 0);
}
END_TEST

START_TEST(test_boundary)
{
    const char *text = "a\xE2\x82\xAC\xF0\x9F\x98\x80z"; /* a, 3 bytes, 4 bytes, z */
    static const size_t expected[] = { 0, 1, 1, 1, 4, 4, 4, 4, 8, 9, 9 };

    for (size_t max = 0; max < ARRAY_SIZE(expected); max++)
        ck_assert_uint_eq(utf8_boundary(text, 9, max), expected[max]);
    ck_assert_uint_eq(utf8_boundary("\x80\x80\x80\x80\x80\x80", 6, 5), 5);
    ck_assert_uint_eq(utf8_boundary("", 0, 0), 0);
}
END_TEST

START_TEST(test_space)
{
    static const uint32_t spaces[] = { 0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x20,   0x85,
                                       0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                                       0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A, 0x2028,
                                       0x2029, 0x202F, 0x205F, 0x3000 };
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(spaces); i++)
        ck_assert_msg(utf8_is_space(spaces[i]), "U+%04X", spaces[i]);
    for (uint32_t code_point = 0; code_point <= 0x10FFFF; code_point++)
        count += utf8_is_space(code_point);
    ck_assert_uint_eq(count, ARRAY_SIZE(spaces));
    ck_assert(utf8_has_space("a\xE3\x80\x80z", 5));
    ck_assert(!utf8_has_space("a\xE2\x80\x8Bz", 5)); /* zero width space has not the property */
    ck_assert(!utf8_has_space("\x80\x85", 2));
    ck_assert(!utf8_has_space("", 0));
}
END_TEST

START_TEST(test_decode)
{
    uint32_t code_point = 0;
    size_t invalid = 0;

    ck_assert_uint_eq(utf8_decode("\xF0\x9F\x98\x80", 4, &code_point, &invalid), 4);
    ck_assert_uint_eq(code_point, 0x1F600);
    ck_assert_uint_eq(utf8_decode("\xF0\x9F\x98", 3, &code_point, &invalid), 0);
    ck_assert_uint_eq(invalid, 3);
    ck_assert_uint_eq(utf8_decode("\xFF", 1, &code_point, NULL), 0);
}
END_TEST

UNIT_MAIN("utf8", test_valid, test_repair_maximal_subparts, test_repair_edges,
          test_complete_size, test_boundary, test_space, test_decode)
