/* template.h - replacement texts with groups in them (contract 8.13). */
#pragma once

#include "buf.h"
#include "pattern.h"

struct template;

/* With LITERAL nothing in the text is special. S217: a group that PATTERN does not have, or an
 * unclosed `${`. The text is copied. */
int template_new(const struct blob *text, bool literal, const struct pattern *pattern,
                 struct template **ret_template, struct sandbox_error *err);
void template_free(struct template *template);
DEFINE_CLEANUP(struct template *, template_free)

/* The pieces, one after the other, for the last match of PATTERN in LINE: *cursor begins at 0;
 * false: no more. A piece may be empty. */
bool template_next(const struct template *template, const struct pattern *pattern,
                   const char *line, size_t *cursor, struct span *ret_piece);
