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

unsigned coverage_report(const struct coverage *coverage, bool has_workers, FILE *to)
{
    unsigned missing = 0;
    for (int op = 0; op < OP_MAX; op++) {
        bool counts = has_workers || strcmp(operations[op].group, "worker") != 0;
        if (counts && !coverage->operations[op]) {
            fprintf(to, "# never exercised: operation %s\n", operations[op].name);
            missing++;
        }
    }
    for (int code = SANDBOX_OK + 1; code < SANDBOX_CODE_MAX; code++) {
        const char *name = error_info_get((enum sandbox_code)code)->code;
        bool counts = has_workers || name[1] != '5';
        if (counts && !coverage->codes[code]) {
            fprintf(to, "# never exercised: code %s\n", name);
            missing++;
        }
    }
    return missing;
}
