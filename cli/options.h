/* options.h - command lines read by a table of options. Options may stand anywhere before `--`,
 * as `--name value` or `--name=value`; one-letter ones as `-x value`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char * */
    OPTION_NUMBER,   /* struct option_number: min to max */
    OPTION_DURATION, /* the same, in ms: 500ms, 30s, 5m, a bare number is seconds */
    OPTION_PAIRS     /* struct option_texts: NAME=VALUE, may be repeated */
};

struct option_number {
    bool given;
    uint64_t value;
};

#define OPTION_TEXTS_MAX 256
struct option_texts {
    size_t count;
    char *items[OPTION_TEXTS_MAX];
};

struct option_row {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;
    const char *value; /* how the usage calls it: "HOST"; NULL for a flag */
    const char *text;
    uint64_t min, max; /* of a text: min 1 is one that is not empty */
    bool any_bytes;    /* OPTION_TEXT: whom it is for looks at it; all others are UTF-8 */
};

/* Tables may share their last rows. */
struct option_table {
    const struct option_row *rows;
    size_t count;
    const struct option_table *more; /* NULL: that is all */
};

/* The I-th row of the table and of those behind it; NULL: there are no more. */
const struct option_row *options_row(const struct option_table *table, size_t i);

/* What is no option. All point into argv. */
struct option_rest {
    size_t word_count;
    char **words; /* before `--` */
    bool has_command;
    size_t command_count;
    char **command; /* behind `--` */
};

/* Sorts ARGV (its words come first afterwards). VALUES is the struct that the rows' offsets
 * mean, with the defaults in it. 0; -EINVAL: ERROR says what is wrong; -ENOMEM. */
int options_parse(const struct option_table *table, int argc, char **argv, void *values,
                  struct option_rest *ret_rest, struct buf *ret_error);

/* Appends one line an option, for the usage. 0 or -ENOMEM. */
int options_describe(const struct option_table *table, struct buf *to);
