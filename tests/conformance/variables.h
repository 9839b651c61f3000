/* variables.h - names and values of one rule, and putting them into texts (README.md). */
#pragma once

#include "buf.h"

struct variables {
    size_t count;
    struct variable {
        char *name;
        char *value;
    } * items;
};

int variables_set(struct variables *variables, const char *name,
                  const char *value); /* copies */
const char *variables_get(const struct variables *variables, const char *name, size_t size);
/* Appends TEXT with $NAME, ${NAME}, ${repeat:…}, ${b64:…}, ${nest:…} put in; a `$` before
 * anything that is no variable stays. 0 or -ENOMEM. */
int variables_expand(const struct variables *variables, const char *text, struct buf *to);
void variables_done(struct variables *variables);
