/* docgen_errors.c - docs/errors.md: an anchor for each code, where docs_url points. */
#include "docgen.h"
#include "error.h"

static void put_intro(struct docgen *doc)
{
    docgen_put(doc,
               "# Error codes\n\n"
               "<!-- Made by sandbox-docgen from contract/errors.def; change that. -->\n\n"
               "Every failed call gives one flat JSON object with the keys `type`, `code`, "
               "`message`, `docs_url`, `retryable`,\n`fix` and `fix_note`, all always there. "
               "`type` and `retryable` depend on the code alone. `fix`, when it is not "
               "null,\nholds keys to merge into the original request. S300 and S301 of "
               "operations with side effects have `outcome`\n(`never_ran`: a retry is safe; "
               "`may_have_run`), S200 and S506 have `partial`.\n\n");
    docgen_put(doc, "| code | type | retryable | name | |\n|---|---|---|---|---|\n");
}

static void put_row(struct docgen *doc, const struct error_info *info)
{
    docgen_put(doc, "| [%s](#%s) | %s | %s | %s | ", info->code, info->code, info->type,
               info->retryable ? "yes" : "no", info->name);
    docgen_cell(doc, info->meaning, info->code, "meaning");
    docgen_put(doc, " |\n");
}

static void put_code(struct docgen *doc, const struct error_info *info)
{
    docgen_need(doc, info->cause, info->code, "cause");
    docgen_need(doc, info->cure, info->code, "cure");
    docgen_need(doc, info->example, info->code, "example");
    docgen_put(doc, "\n<a id=\"%s\"></a>\n## %s\n%s: %s. Type `%s`, %s.\n\n", info->code,
               info->code, info->name, info->meaning, info->type,
               info->retryable ? "retryable" : "not retryable");
    docgen_put(doc, "**Cause.** %s\n\n", info->cause);
    docgen_put(doc, "**Example.** `%s`\n\n", info->example);
    docgen_put(doc, "**Cure.** %s\n", info->cure);
}

void docgen_errors(struct docgen *doc)
{
    put_intro(doc);
    for (enum sandbox_code code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++)
        put_row(doc, error_info_get(code));
    for (enum sandbox_code code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++)
        put_code(doc, error_info_get(code));
}
