/* template.c - see template.h. */
#include "template.h"

#include <ctype.h>
#include <string.h>

#define SHOWN_BYTES 100 /* of a reference, in messages */

struct piece {
    struct span text; /* literal, or of a name; in the copy */
    char *name;       /* owned; a group by name */
    int group;        /* by number; -1: a literal or a name */
};

struct template
{
    char *text;
    struct piece *pieces;
    size_t count;
    size_t capacity;
};

void template_free(struct template *template)
{
    if (!template)
        return;
    for (size_t i = 0; i < template->count; i++)
        free(template->pieces[i].name);
    free(template->pieces);
    free(template->text);
    free(template);
}

static struct piece *piece_add(struct template *template)
{
    if (template->count == template->capacity) {
        const size_t capacity = template->capacity ? template->capacity * 2 : 8;
        struct piece *pieces = reallocarray(template->pieces, capacity, sizeof(*pieces));

        if (!pieces)
            return NULL;
        template->pieces = pieces;
        template->capacity = capacity;
    }
    template->pieces[template->count] = (struct piece){ .group = -1 };
    return &template->pieces[template->count++];
}

static int no_memory(struct sandbox_error *err)
{
    return sandbox_error_set(err, S216, "no memory for the replacement");
}

static int literal_add(struct template *template, const char *text, size_t size,
                       struct sandbox_error *err)
{
    struct piece *piece;

    if (size == 0)
        return 0;
    piece = piece_add(template);
    if (!piece)
        return no_memory(err);
    piece->text = (struct span){ .data = text, .size = size };
    return 0;
}

static bool is_name_character(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool all_digits(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!isdigit((unsigned char)text.data[i]))
            return false;
    }
    return text.size > 0;
}

/* REFERENCE in the template, without its `$` and braces. */
static int group_missing(const struct template *template, struct span reference,
                         struct sandbox_error *err)
{
    const bool braced = reference.data[-1] == '{';
    const char *start = reference.data - (braced ? 2 : 1);
    const size_t size = reference.size + (braced ? 3 : 1);

    return sandbox_error_set(err, S217,
                             "replacement `%.*s`, offset %zu: the pattern has no such group",
                             (int)(size > SHOWN_BYTES ? SHOWN_BYTES : size), start,
                             (size_t)(start - template->text));
}

/* A group by number or name, whichever REFERENCE looks like. */
static int group_add(struct template *template, struct span reference,
                     const struct pattern *pattern, struct sandbox_error *err)
{
    struct piece *piece;
    unsigned group = 0;

    if (all_digits(reference)) {
        for (size_t i = 0; i < reference.size && group <= UINT16_MAX; i++)
            group = group * 10 + (unsigned)(reference.data[i] - '0');
        if (group > pattern_group_count(pattern))
            return group_missing(template, reference, err);
        piece = piece_add(template);
        if (!piece)
            return no_memory(err);
        piece->group = (int)group;
        return 0;
    }
    piece = piece_add(template);
    if (!piece)
        return no_memory(err);
    piece->name = strndup(reference.data, reference.size);
    if (!piece->name)
        return no_memory(err);
    if (reference.size != strlen(piece->name) || !pattern_has_name(pattern, piece->name))
        return group_missing(template, reference, err);
    return 0;
}

/* What follows a `$` at AT. How many bytes it took; 0: the `$` is literal; or -1. */
static ssize_t reference_parse(struct template *template, const char *at, const char *end,
                               const struct pattern *pattern, struct sandbox_error *err)
{
    struct span reference = { .data = at };
    bool braced = at < end && *at == '{';
    const char *close;

    if (at == end)
        return 0;
    if (braced) {
        close = memchr(at, '}', (size_t)(end - at));
        if (!close)
            return sandbox_error_set(err, S217, "replacement, offset %zu: `${` without `}`",
                                     (size_t)(at - template->text) - 1);
        reference = (struct span){ .data = at + 1, .size = (size_t)(close - at) - 1 };
    } else if (isdigit((unsigned char)*at)) {
        while (at + reference.size < end && isdigit((unsigned char)at[reference.size]))
            reference.size++;
    } else {
        while (at + reference.size < end && is_name_character(at[reference.size]))
            reference.size++;
    }
    if (!braced && reference.size == 0)
        return 0;
    if (group_add(template, reference, pattern, err) < 0)
        return -1;
    return (ssize_t)(reference.size + (braced ? 2 : 0));
}

static int template_parse(struct template *template, size_t size, const struct pattern *pattern,
                          struct sandbox_error *err)
{
    const char *at = template->text, *end = template->text + size, *literal = at;

    while (at < end) {
        const char *dollar = memchr(at, '$', (size_t)(end - at));
        ssize_t taken;

        if (!dollar)
            break;
        if (dollar + 1 < end && dollar[1] == '$') { /* the first of the two is the text */
            if (literal_add(template, literal, (size_t)(dollar + 1 - literal), err) < 0)
                return -1;
            literal = at = dollar + 2;
            continue;
        }
        if (literal_add(template, literal, (size_t)(dollar - literal), err) < 0)
            return -1;
        taken = reference_parse(template, dollar + 1, end, pattern, err);
        if (taken < 0)
            return -1;
        literal = taken == 0 ? dollar : dollar + 1 + taken;
        at = dollar + 1 + taken;
    }
    return literal_add(template, literal, (size_t)(end - literal), err);
}

int template_new(const struct blob *text, bool literal, const struct pattern *pattern,
                 struct template **ret_template, struct sandbox_error *err)
{
    _cleanup_(template_freep)
    struct template *template = calloc(1, sizeof(*template));
    int result;

    if (!template)
        return no_memory(err);
    template->text = malloc(text->size + 1);
    if (!template->text)
        return no_memory(err);
    if (text->size > 0)
        memcpy(template->text, text->data, text->size);
    result = literal ? literal_add(template, template->text, text->size, err)
                     : template_parse(template, text->size, pattern, err);
    if (result < 0)
        return -1;
    *ret_template = take_ptr(template);
    return 0;
}

bool template_next(const struct template *template, const struct pattern *pattern,
                   const char *line, size_t *cursor, struct span *ret_piece)
{
    const struct piece *piece;
    unsigned group;
    size_t start, end;

    if (*cursor == template->count)
        return false;
    piece = &template->pieces[(*cursor)++];
    *ret_piece = piece->text;
    if (piece->group < 0 && !piece->name)
        return true;
    group = piece->name ? pattern_group_named(pattern, piece->name) : (unsigned)piece->group;
    *ret_piece = (struct span){ .data = line };
    if (pattern_group(pattern, group, &start, &end))
        *ret_piece = (struct span){ .data = line + start, .size = end - start };
    return true;
}
