/* fuzz_agent_template.c - replacement templates against any pattern: the pieces come from the
 * template or the line, and an accepted template has no group that is not there. */
#include <stdlib.h>
#include <string.h>

#include "template.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expand(const struct template *template, struct pattern *pattern, const char *line)
{
    const struct pattern_subject subject = { .text = line, .size = strlen(line) };
    _cleanup_(sandbox_error_done)
    struct sandbox_error err = { 0 };
    struct span piece;
    size_t cursor = 0;

    if (pattern_match(pattern, &subject, &err) <= 0)
        return;
    while (template_next(template, pattern, line, &cursor, &piece)) {
        if (piece.size > 0 && !piece.data)
            abort();
    }
}

/* Input: pattern, NUL, template. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *split = memchr(data, 0, size);
    _cleanup_(sandbox_error_done)
    struct sandbox_error err = { 0 };
    _cleanup_(pattern_freep)
    struct pattern *pattern = NULL;
    _cleanup_(template_freep)
    struct template *template = NULL;
    struct pattern_spec spec;
    struct blob text;

    if (!split || size > 4096 || !utf8_valid(data, size))
        return 0;
    spec = (struct pattern_spec){
        .text = { .data = (char *)(uintptr_t)data, .size = (size_t)(split - data) },
        .ignore_case = size % 2 == 0,
    };
    text = (struct blob){
        .data = (char *)(uintptr_t)(split + 1),
        .size = size - spec.text.size - 1,
    };
    if (pattern_new(&spec, NULL, &pattern, &err) < 0)
        return 0;
    if (template_new(&text, false, pattern, &template, &err) < 0) {
        if (err.code != S217)
            abort();
        return 0;
    }
    expand(template, pattern, "a line with 0123 and \xc3\xa9 in it\n");
    return 0;
}
