/* command.h - what program an exec is to run (contract 5.2.3). Pure. */
#pragma once

#include "error.h"
#include "tables.h"

/* The three shapes: argv, a command line, a program with args. S001 when it is none of them.
 * *ret_argv was zeroed; the caller frees it in any case. */
int command_read(const struct exec_request *request, struct text_list *ret_argv,
                 struct sandbox_error *err);

/* Splits a command line; this is not a shell. S001: a quote is not closed, a lone `\` stands at
 * the end. */
int command_split(const char *line, struct text_list *words, struct sandbox_error *err);
