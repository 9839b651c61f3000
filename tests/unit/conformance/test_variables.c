/* test_variables.c - what is put into texts, and what stays as it is. */
#include "unit.h"
#include "variables.h"

static void expands(const struct variables *variables, const char *text, const char *wanted)
{
    struct buf out = { 0 };
    ck_assert_int_eq(variables_expand(variables, text, &out), 0);
    ck_assert_str_eq(buf_text(&out), wanted);
    buf_done(&out);
}

START_TEST(test_names)
{
    struct variables variables = { 0 };
    ck_assert_int_eq(variables_set(&variables, "A", "1"), 0);
    ck_assert_int_eq(variables_set(&variables, "AB", "2"), 0);
    ck_assert_int_eq(variables_set(&variables, "C.reader", "{\"r\":1}"), 0);
    expands(&variables, "$A $AB ${A}B $ABC", "1 2 1B 2C"); /* the longest known name */
    expands(&variables, "$C.reader,$C.writer", "{\"r\":1},$C.writer");
    expands(&variables, "$$ $ $1 ${nope} cost: $", "$$ $ $1 ${nope} cost: $");
    ck_assert_int_eq(variables_set(&variables, "A", "new"), 0);
    expands(&variables, "$A", "new");
    ck_assert_ptr_null(variables_get(&variables, "nope", 4));
    variables_done(&variables);
}
END_TEST

START_TEST(test_functions)
{
    struct variables variables = { 0 };
    ck_assert_int_eq(variables_set(&variables, "V", "ab"), 0);
    expands(&variables, "[${repeat:x:3}${repeat:y:0}]", "[xxx]");
    expands(&variables, "${repeat:{\"a\":1},:2}", "{\"a\":1},{\"a\":1},");
    expands(&variables, "${repeat:$V:2}", "abab");
    expands(&variables, "${b64:hi}${b64:}", "aGk=");
    expands(&variables, "${b64:${repeat:a:3}}", "YWFh");
    expands(&variables, "${nest:3}", "[[[]]]");
    ck_assert_int_eq(variables_set(&variables, "LINES", "a\n\"b\""), 0);
    expands(&variables, "${json:LINES}", "\"a\\n\\\"b\\\"\"");
    expands(&variables, "${json:NONE}", "${json:NONE}");
    expands(&variables, "${hex:41c3a9}", "Aé");
    expands(&variables, "${hex:4}${hex:zz}${repeat:x}", "${hex:4}${hex:zz}${repeat:x}");
    variables_done(&variables);
}
END_TEST

UNIT_MAIN("variables", test_names, test_functions)
