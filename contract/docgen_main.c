/* docgen_main.c - sandbox-docgen: prints docs/contract.md, docs/errors.md, docs/settings.md or
 * the manual page of the settings; with a text missing it prints nothing and fails. */
#include <stdio.h>
#include <string.h>

#include "docgen.h"

static const struct document {
    const char *name;
    void (*write)(struct docgen *doc);
} documents[] = {
    { "contract", docgen_contract },
    { "errors", docgen_errors },
    { "settings", docgen_settings },
    { "manual", docgen_manual },
};

static int print_document(const struct document *document)
{
    struct docgen doc = { 0 };
    int code = 1;

    document->write(&doc);
    if (doc.result < 0)
        (void)fprintf(stderr, "sandbox-docgen: %s\n", strerror(-doc.result));
    else if (doc.empty == 0 && fwrite(doc.out.data, 1, doc.out.size, stdout) == doc.out.size &&
             fflush(stdout) == 0)
        code = 0;
    buf_done(&doc.out);
    return code;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(documents); i++) {
        if (strcmp(argv[1], documents[i].name) == 0)
            return print_document(&documents[i]);
    }
    (void)fprintf(stderr, "usage: sandbox-docgen contract|errors|settings|manual\n");
    return 2;
}
