/* coverage.c - see coverage.h. */

#include "coverage.h"

#include <string.h>

void coverage_add(struct coverage *coverage, const struct coverage *more)
{
    for (int op = 0; op < OP_MAX; op++)
        coverage->operations[op] |= more->operations[op];
    for (int code = 0; code < SANDBOX_CODE_MAX; code++)
        coverage->codes[code] |= more->codes[code];
}

void coverage_add_steps(struct coverage *coverage, const struct yaml_node *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        const struct yaml_node *call = yaml_get(steps->items[i], "call");
        const struct yaml_node *error = yaml_get(steps->items[i], "error");
        const struct operation *operation = call
                                                ? operation_find(call->text, strlen(call->text))
                                                : NULL;
        if (operation)
            coverage->operations[operation->id] = true;
        if (error)
            coverage->codes[error_code_parse(error->text)] = true;
    }
}

unsigned coverage_report(const struct coverage *coverage, const struct coverage *excused,
                         FILE *to)
{
    unsigned missing = 0;
    for (int op = 0; op < OP_MAX; op++) {
        if (!coverage->operations[op] && !excused->operations[op]) {
            fprintf(to, "# never exercised: operation %s\n", operations[op].name);
            missing++;
        }
    }
    for (int code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++) {
        if (!coverage->codes[code] && !excused->codes[code]) {
            fprintf(to, "# never exercised: code %s\n",
                    error_info_get((enum sandbox_code)code)->code);
            missing++;
        }
    }
    return missing;
}
