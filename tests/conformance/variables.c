/* variables.c - see variables.h. */

#include "variables.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base64.h"
#include "error.h"

int variables_set(struct variables *variables, const char *name, const char *value)
{
    for (size_t i = 0; i < variables->count; i++) {
        if (strcmp(variables->items[i].name, name) == 0) {
            char *copy = strdup(value);
            if (!copy)
                return -ENOMEM;
            free(variables->items[i].value);
            variables->items[i].value = copy;
            return 0;
        }
    }
    struct variable *items = realloc(variables->items,
                                     (variables->count + 1) * sizeof(*variables->items));
    if (!items)
        return -ENOMEM;
    variables->items = items;
    items[variables->count] = (struct variable){ strdup(name), strdup(value) };
    variables->count++;
    return items[variables->count - 1].name && items[variables->count - 1].value ? 0 : -ENOMEM;
}

const char *variables_get(const struct variables *variables, const char *name, size_t size)
{
    for (size_t i = 0; i < variables->count; i++) {
        if (strlen(variables->items[i].name) == size &&
            memcmp(variables->items[i].name, name, size) == 0)
            return variables->items[i].value;
    }
    return NULL;
}

/* The first SIZE bytes of TEXT, variables in it put in. */
static int expand_part(const struct variables *variables, const char *text, size_t size,
                       struct buf *to)
{
    _cleanup_free_ char *part = strndup(text, size);
    return part ? variables_expand(variables, part, to) : -ENOMEM;
}

/* TEXT:COUNT; the text may hold variables. */
static int expand_repeat(const struct variables *variables, const char *argument, size_t size,
                         struct buf *to)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    const char *colon = memrchr(argument, ':', size);
    if (!colon)
        return -EINVAL;
    long count = strtol(colon + 1, NULL, 10);
    int ret = expand_part(variables, argument, (size_t)(colon - argument), &text);
    for (long i = 0; i < count && ret == 0; i++)
        ret = buf_append(to, text.data, text.size);
    return ret;
}

static int expand_b64(const struct variables *variables, const char *argument, size_t size,
                      struct buf *to)
{
    _cleanup_(buf_done)
    struct buf bytes = { 0 };
    int ret = expand_part(variables, argument, size, &bytes);
    return ret < 0 ? ret : base64_encode(to, bytes.data, bytes.size);
}

static int expand_nest(const char *argument, struct buf *to)
{
    long depth = strtol(argument, NULL, 10);
    int ret = 0;
    for (long i = 0; i < depth && ret == 0; i++)
        ret = buf_append_byte(to, '[');
    for (long i = 0; i < depth && ret == 0; i++)
        ret = buf_append_byte(to, ']');
    return ret;
}

/* For bytes that are not UTF-8. */
static int expand_hex(const char *argument, size_t size, struct buf *to)
{
    int ret = size % 2 == 0 ? 0 : -EINVAL;
    for (size_t i = 0; i < size && ret == 0; i += 2) {
        char digits[3] = { argument[i], argument[i + 1] }, *end;
        uint8_t byte = (uint8_t)strtoul(digits, &end, 16);
        ret = *end ? -EINVAL : buf_append_byte(to, byte);
    }
    return ret;
}

/* The value of a variable as JSON text. */
static int expand_json(const struct variables *variables, const char *name, size_t size,
                       struct buf *to)
{
    const char *value = variables_get(variables, name, size);
    return value ? json_append_string(to, value, strlen(value)) : -EINVAL;
}

/* The inside of ${…}. */
static int expand_braced(const struct variables *variables, const char *name, size_t size,
                         struct buf *to)
{
    if (size > 7 && memcmp(name, "repeat:", 7) == 0)
        return expand_repeat(variables, name + 7, size - 7, to);
    if (size > 5 && memcmp(name, "nest:", 5) == 0)
        return expand_nest(name + 5, to);
    if (size > 4 && memcmp(name, "hex:", 4) == 0)
        return expand_hex(name + 4, size - 4, to);
    if (size > 5 && memcmp(name, "json:", 5) == 0)
        return expand_json(variables, name + 5, size - 5, to);
    if (size >= 4 && memcmp(name, "b64:", 4) == 0)
        return expand_b64(variables, name + 4, size - 4, to);
    const char *value = variables_get(variables, name, size);
    return value ? buf_append_text(to, value) : -EINVAL;
}

/* The brace that closes the one TEXT begins with; NULL if there is none. */
static const char *closing_brace(const char *text)
{
    int depth = 0;
    for (; *text; text++) {
        depth += (*text == '{') - (*text == '}');
        if (depth == 0)
            return text;
    }
    return NULL;
}

/* Longest run of name characters whose value is known: `$C.reader` before `$C`. */
static size_t name_size(const struct variables *variables, const char *name)
{
    size_t size = 0;
    while (isalnum((unsigned char)name[size]) || name[size] == '_' || name[size] == '.')
        size++;
    while (size > 0 && !variables_get(variables, name, size))
        size--;
    return size;
}

int variables_expand(const struct variables *variables, const char *text, struct buf *to)
{
    int ret = 0;
    while (*text && ret == 0) {
        const char *end = text[0] == '$' && text[1] == '{' ? closing_brace(text + 1) : NULL;
        size_t mark = to->size;
        if (end && expand_braced(variables, text + 2, (size_t)(end - text) - 2, to) == 0) {
            text = end + 1;
            continue;
        }
        to->size = mark;
        size_t size = text[0] == '$' ? name_size(variables, text + 1) : 0;
        if (size > 0) {
            ret = buf_append_text(to, variables_get(variables, text + 1, size));
            text += size + 1;
        } else {
            ret = buf_append_byte(to, (uint8_t)*text++);
        }
    }
    return ret;
}

void variables_done(struct variables *variables)
{
    for (size_t i = 0; i < variables->count; i++) {
        free(variables->items[i].name);
        free(variables->items[i].value);
    }
    free(variables->items);
    *variables = (struct variables){ 0 };
}
