/* suggest.h - "did you mean": the nearest of some names, if it is near enough. */
#pragma once

#include <stddef.h>

#define SUGGEST_MAX_BYTES 64u

struct suggest {
    const char *word;
    size_t size;
    const char *best; /* NULL: none is near */
    size_t distance;  /* of the best */
};

/* WORD is borrowed. */
void suggest_init(struct suggest *suggest, const char *word, size_t size);
void suggest_offer(struct suggest *suggest, const char *name);
