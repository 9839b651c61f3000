/* test_docgen.c - the documents leave nothing of the tables out, and miss no text silently. */
#include "docgen.h"

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "settings.h"
#include "tables.h"
#include "unit.h"

static void check_holds(struct docgen *doc, const char *format, const char *name)
{
    char text[128];

    (void)snprintf(text, sizeof(text), format, name);
    ck_assert_msg(strstr(buf_text(&doc->out), text), "not there: %s", text);
}

START_TEST(test_missing_text)
{
    struct docgen doc = { 0 };

    docgen_need(&doc, "x", "owner", "name");
    ck_assert_uint_eq(doc.empty, 0);
    docgen_need(&doc, "", "owner", "name");
    docgen_cell(&doc, "", "owner", "name");
    ck_assert_uint_eq(doc.empty, 2);
    buf_done(&doc.out);
}
END_TEST

START_TEST(test_cell)
{
    struct docgen doc = { 0 };

    docgen_cell(&doc, "a|b\nc%", "owner", "name");
    ck_assert_str_eq(buf_text(&doc.out), "a\\|b c%");
    buf_done(&doc.out);
}
END_TEST

START_TEST(test_contract)
{
    struct docgen doc = { 0 };

    docgen_contract(&doc);
    ck_assert_int_eq(doc.result, 0);
    ck_assert_uint_eq(doc.empty, 0);
    for (size_t i = 0; i < OP_MAX; i++) {
        const struct type *request = operations[i].request;

        check_holds(&doc, "\n### %s\n", operations[i].name);
        for (size_t j = 0; j < request->field_count; j++)
            check_holds(&doc, "| `%s` | ", request->fields[j].name);
    }
    for (size_t i = 0; i < limit_count; i++)
        check_holds(&doc, "| %s | ", limits[i].text);
    buf_done(&doc.out);
}
END_TEST

START_TEST(test_errors)
{
    struct docgen doc = { 0 };

    docgen_errors(&doc);
    ck_assert_int_eq(doc.result, 0);
    ck_assert_uint_eq(doc.empty, 0);
    for (enum sandbox_code code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++) {
        check_holds(&doc, "<a id=\"%s\"></a>\n", error_info_get(code)->code);
        check_holds(&doc, "\n## %s\n", error_info_get(code)->code);
    }
    buf_done(&doc.out);
}
END_TEST

START_TEST(test_settings)
{
    struct docgen doc = { 0 };

    docgen_settings(&doc);
    ck_assert_int_eq(doc.result, 0);
    ck_assert_uint_eq(doc.empty, 0);
    for (size_t i = 0; i < router_setting_count; i++)
        check_holds(&doc, "| `sandbox.%s` | ", router_setting_rows[i].name);
    for (size_t i = 0; i < adapter_setting_count; i++)
        check_holds(&doc, "| `%s` | ", adapter_setting_rows[i].name);
    buf_done(&doc.out);
}
END_TEST

UNIT_MAIN("docgen", test_missing_text, test_cell, test_contract, test_errors, test_settings)
