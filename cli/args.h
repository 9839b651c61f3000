/* args.h - the words of `iii trigger` as one JSON body, typed by the tables (contract 4.5). */
#pragma once

#include "buf.h"
#include "span.h"
#include "tables.h"

struct args {
    const char *function; /* "sandbox::fs::ls": the table is looked up behind the first `::` */
    struct span json;     /* the payload; no data: there is none */
    const char *source;   /* where that is from, for messages: "--json" */
    char *const *pairs;   /* KEY=VALUE */
    size_t pair_count;
};

/* Appends the body. 0; -EINVAL: wrong input, ERROR says what; -ENOMEM. */
int args_payload(const struct args *args, struct buf *ret_payload, struct buf *ret_error);

/* The operation that FUNCTION names, whoever's it is; NULL: in no table. */
const struct operation *args_operation(const char *function);
