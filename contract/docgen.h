/* docgen.h - the tables as documents. Each writer fills a buffer and says so when a text that
 * the document needs is empty; docgen.c is the program. */
#pragma once

#include <stdbool.h>

#include "buf.h"

struct docgen {
    struct buf out;
    int result;     /* the first -errno of writing */
    unsigned empty; /* texts that are missing, each named on stderr */
};

void docgen_put(struct docgen *doc, const char *format, ...) _printf_(2, 3);
/* A text of a table's cell: | and line ends escaped. OWNER and NAME are for the complaint. */
void docgen_cell(struct docgen *doc, const char *text, const char *owner, const char *name);
/* Complains when TEXT is empty. */
void docgen_need(struct docgen *doc, const char *text, const char *owner, const char *name);

void docgen_contract(struct docgen *doc);
void docgen_errors(struct docgen *doc);
void docgen_settings(struct docgen *doc);
void docgen_manual(struct docgen *doc);

/* How the documents call a kind of setting. */
const char *docgen_kind_name(int kind);
