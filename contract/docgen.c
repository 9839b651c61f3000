/* docgen.c - see docgen.h: what the writers of all documents share. */
#include "docgen.h"

#include <stdarg.h>
#include <stdio.h>

void docgen_put(struct docgen *doc, const char *format, ...)
{
    va_list arguments;

    if (doc->result < 0)
        return;
    va_start(arguments, format);
    doc->result = buf_vprintf(&doc->out, format, arguments);
    va_end(arguments);
}

void docgen_need(struct docgen *doc, const char *text, const char *owner, const char *name)
{
    if (text[0])
        return;
    doc->empty++;
    (void)fprintf(stderr, "sandbox-docgen: %s.%s has no text\n", owner, name);
}

void docgen_cell(struct docgen *doc, const char *text, const char *owner, const char *name)
{
    docgen_need(doc, text, owner, name);
    for (; *text; text++) {
        if (*text == '|')
            docgen_put(doc, "\\|");
        else
            docgen_put(doc, "%c", *text == '\n' ? ' ' : *text);
    }
}
