/* settings_fail.c - what is said of a wrong settings file: line, whole key, why. */
#include "settings_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"

static void show_key(struct buf *to, const struct setting_place *place)
{
    if (place->parent)
        show_key(to, place->parent);
    if (!place->key[0])
        return;
    if (to->size > 0)
        (void)buf_append_byte(to, '.'); /* a text cut short is still a text */
    (void)buf_append_text(to, place->key);
}

int settings_fail(const struct setting_place *place, unsigned line, const char *format, ...)
{
    struct buf key = { 0 };
    char why[256];
    const char *shown;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    show_key(&key, place);
    shown = buf_text(&key);
    if (shown && shown[0])
        (void)snprintf(place->error, SETTINGS_ERROR_MAX, "%u: %.200s: %s", line, shown, why);
    else
        (void)snprintf(place->error, SETTINGS_ERROR_MAX, "%u: %s", line, why);
    buf_done(&key);
    return -EINVAL;
}

int settings_fail_type(const struct setting_place *place, const struct yaml_node *node,
                       const char *wanted)
{
    static const char *const shown[] = {
        [YAML_NULL] = "nothing", [YAML_LIST] = "a list", [YAML_MAP] = "a map"
    };
    const char *quote = node->quoted ? "\"" : "";

    if (node->kind != YAML_SCALAR)
        return settings_fail(place, node->line, "expected %s, got %s", wanted,
                             shown[node->kind]);
    return settings_fail(place, node->line, "expected %s, got %s%.100s%s", wanted, quote,
                         node->text, quote);
}

#define NAME_MAX_BYTES 48
#define DISTANCE_MAX 3

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

/* Edits that make A of B (Levenshtein); a large number for texts longer than any key. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned row[NAME_MAX_BYTES + 1];
    size_t a_size = strlen(a), b_size = strlen(b);

    if (a_size > NAME_MAX_BYTES || b_size > NAME_MAX_BYTES)
        return NAME_MAX_BYTES;
    for (unsigned j = 0; j <= b_size; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a_size; i++) {
        unsigned diagonal = row[0];

        row[0] = i;
        for (unsigned j = 1; j <= b_size; j++) {
            unsigned above = row[j];

            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_size];
}

static const char *nearest_name(const char *name, const struct setting_row *rows,
                                size_t row_count)
{
    unsigned best = DISTANCE_MAX + 1;
    const char *nearest = NULL;

    for (size_t i = 0; i < row_count; i++) {
        unsigned distance = edit_distance(name, rows[i].name);

        if (distance < best && distance < strlen(rows[i].name)) {
            best = distance;
            nearest = rows[i].name;
        }
    }
    return nearest;
}

int settings_fail_unknown(const struct setting_place *place, const struct yaml_node *key,
                          const struct setting_row *rows, size_t row_count)
{
    struct setting_place inner = setting_place_inner(place, key->text);
    const char *nearest = nearest_name(key->text, rows, row_count);

    if (nearest)
        return settings_fail(&inner, key->line, "unknown key, did you mean %s?", nearest);
    return settings_fail(&inner, key->line, "unknown key");
}
