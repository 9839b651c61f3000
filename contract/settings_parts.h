/* settings_parts.h - what the files settings*.c share; nobody else includes it. */
#pragma once

#include "settings.h"

/* A key on the way into the file. */
struct setting_place {
    const struct setting_place *parent;
    const char *key; /* may hold dots itself; "" is the file's top */
    char *error;     /* SETTINGS_ERROR_MAX bytes */
};

static inline struct setting_place setting_place_inner(const struct setting_place *parent,
                                                       const char *key)
{
    return (struct setting_place){ .parent = parent, .key = key, .error = parent->error };
}

/* settings_fail.c. All write `LINE: KEY: why` and return -EINVAL. */
int settings_fail(const struct setting_place *place, unsigned line, const char *format, ...)
    _printf_(3, 4);
/* NODE is of another type than WANTED ("an integer"): the text shows what it is. */
int settings_fail_type(const struct setting_place *place, const struct yaml_node *node,
                       const char *wanted);
/* KEY is none of the rows; the text names the row that was probably meant. */
int settings_fail_unknown(const struct setting_place *place, const struct yaml_node *key,
                          const struct setting_row *rows, size_t row_count);

/* settings_read.c. Members of RET are zeroed already and stay to be released by the caller on
 * failure. */
int settings_read_rows(const struct setting_place *place, const struct yaml_node *map,
                       const struct setting_row *rows, size_t row_count, void *ret);

/* A map of the file with its place; MAP NULL: not there. */
struct setting_section {
    struct setting_place place;
    const struct yaml_node *map;
};

/* settings_check.c. What keys mean beyond their types; fills the defaults that depend on the
 * process. */
int settings_check_router(const struct setting_section *section,
                          struct router_settings *router);
int settings_check_adapter(const struct setting_section *section, struct settings *settings);
