/* span.h - a run of bytes inside memory that somebody else owns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct span {
    const char *data; /* NULL: absent */
    size_t size;
};

static inline struct span span_of_text(const char *text)
{
    return (struct span){ .data = text, .size = text ? strlen(text) : 0 };
}

static inline bool span_equals(struct span span, const char *text)
{
    return span.data && span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

/* ASCII letters in any case. */
static inline bool span_equals_nocase(struct span span, const char *text)
{
    return span.data && span.size == strlen(text) &&
           strncasecmp(span.data, text, span.size) == 0;
}

static inline bool span_starts_with(struct span span, const char *text)
{
    size_t size = strlen(text);

    return span.data && span.size >= size && memcmp(span.data, text, size) == 0;
}

/* Takes as long for any SPAN and TEXT of the same sizes: for secrets. */
static inline bool span_equals_constant_time(struct span span, const char *text)
{
    size_t size = strlen(text);
    unsigned char difference = 0;

    if (!span.data || span.size != size)
        return false;
    for (size_t i = 0; i < size; i++)
        difference |= (unsigned char)(span.data[i] ^ text[i]);
    return difference == 0;
}
