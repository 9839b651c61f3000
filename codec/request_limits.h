/* request_limits.h - what contract 4.1, 5.1.1 and 6 say of a request that no single row of the
 * tables can: sums over fields, counts, and characters. Only the request is looked at. */
#pragma once

#include "error.h"
#include "tables.h"

/* All return 0, or -1 with S001. They belong to the check of the body: right behind its
 * decoding. */
int request_limits_check_create(const struct create_request *request,
                                struct sandbox_error *err);
int request_limits_check_exec(const struct exec_request *request, struct sandbox_error *err);
int request_limits_check_run(const struct run_request *request, struct sandbox_error *err);
int request_limits_check_write(const struct fs_write_request *request,
                               struct sandbox_error *err);

/* By operation: the one of the above that fits, or 0. REQUEST is the operation's struct. */
int request_limits_check(enum operation_id operation, const void *request,
                         struct sandbox_error *err);

/* The words of a command line, once they are known: each by itself. Their sum is no larger than
 * the line's, which request_limits_check_exec() counted. */
int request_limits_check_argv(const struct text_list *argv, struct sandbox_error *err);

/* How many bytes TEXT, if it is base64, stands for. */
uint64_t request_limits_base64_bytes(const char *text);
