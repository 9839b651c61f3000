/* docgen_manual.c - the manual page iii-sandbox.yaml(5): the settings, as docs/settings.md has
 * them. */
#include "docgen.h"
#include "settings.h"

/* Text as roff takes it. */
static void put_text(struct docgen *doc, const char *text)
{
    if (*text == '.' || *text == '\'')
        docgen_put(doc, "\\&");
    for (; *text; text++) {
        if (*text == '\\' || *text == '-')
            docgen_put(doc, *text == '-' ? "\\-" : "\\e");
        else
            docgen_put(doc, "%c", *text);
    }
}

static void put_rows(struct docgen *doc, const char *prefix, const struct setting_row *rows,
                     size_t row_count)
{
    for (size_t i = 0; i < row_count; i++) {
        docgen_need(doc, rows[i].text, "setting", rows[i].name);
        docgen_put(doc, ".TP\n\\fB%s%s\\fR (%s", prefix, rows[i].name,
                   docgen_kind_name(rows[i].kind));
        if (rows[i].standard[0]) {
            docgen_put(doc, "; ");
            put_text(doc, rows[i].standard);
        }
        docgen_put(doc, ")\n");
        put_text(doc, rows[i].text);
        docgen_put(doc, "\n");
    }
}

void docgen_manual(struct docgen *doc)
{
    docgen_put(doc,
               ".TH III\\-SANDBOX.YAML 5 \"\" \"iii\\-sandbox %s\" \"File Formats\"\n"
               ".SH NAME\niii\\-sandbox.yaml \\- settings of the sandbox router and its "
               "adapters\n"
               ".SH DESCRIPTION\nOne YAML file for all processes, given by "
               "\\fB\\-\\-config\\fR. A change of the file, or SIGHUP, reads it again; a file "
               "that is wrong, or holds nothing, is logged and changes nothing.\n"
               ".SH ROUTER\n",
               SANDBOX_VERSION);
    put_rows(doc, "sandbox.", router_setting_rows, router_setting_count);
    docgen_put(doc, ".SH ADAPTER\nBelow \\fBworkers.iii\\-sandbox\\fR or "
                    "\\fBsandbox.settings\\fR, not in both.\n");
    put_rows(doc, "", adapter_setting_rows, adapter_setting_count);
    docgen_put(doc, ".SH SEE ALSO\n.BR sandbox\\-router (8)\n");
}
