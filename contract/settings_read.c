/* settings_read.c - one map of the settings file against its rows: types, ranges, defaults,
 * unknown keys. What several keys mean together is settings.c's. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "settings.h"
#include "settings_parts.h"

static bool is_absent(const struct yaml_node *node)
{
    return !node || node->kind == YAML_NULL;
}

/* Plain true, 5 and the like are no text: who means text quotes them. */
static bool is_text(const struct yaml_node *node)
{
    uint64_t number;
    bool flag;

    return node->kind == YAML_SCALAR && yaml_as_bool(node, &flag) < 0 &&
           yaml_as_u64(node, &number) == -EINVAL;
}

static int copy_text(const char *text, char **ret_text)
{
    *ret_text = strdup(text);
    return *ret_text ? 0 : -ENOMEM;
}

static int read_bool(const struct setting_place *place, const struct yaml_node *node,
                     const struct setting_row *row, void *member)
{
    if (yaml_as_bool(node, member) < 0)
        return settings_fail_type(place, node, "true or false");
    return 0;
}

static int read_u64(const struct setting_place *place, const struct yaml_node *node,
                    const struct setting_row *row, void *member)
{
    uint64_t value;
    int result = yaml_as_u64(node, &value);

    if (result == -EINVAL)
        return settings_fail_type(place, node, "an integer");
    if (result < 0 || value < row->min || value > row->max)
        return settings_fail(place, node->line,
                             "expected an integer from %" PRIu64 " to %" PRIu64 ", got %.32s",
                             row->min, row->max, node->text);
    *(uint64_t *)member = value;
    return 0;
}

static int read_u32(const struct setting_place *place, const struct yaml_node *node,
                    const struct setting_row *row, void *member)
{
    uint64_t value = 0;
    int result = read_u64(place, node, row, &value);

    if (result == 0)
        *(uint32_t *)member = (uint32_t)value; /* the row's range is that of u32 */
    return result;
}

static int read_u32s(const struct setting_place *place, const struct yaml_node *node,
                     const struct setting_row *row, void *member)
{
    struct setting_numbers *list = member;

    if (node->kind != YAML_LIST)
        return settings_fail(place, node->line, "expected a list");
    if (node->count > SETTING_NUMBERS_MAX)
        return settings_fail(place, node->line, "expected at most %u numbers, got %zu",
                             SETTING_NUMBERS_MAX, node->count);
    list->items = calloc(node->count ? node->count : 1, sizeof(*list->items));
    if (!list->items)
        return -ENOMEM;
    for (size_t i = 0; i < node->count; i++) {
        int result = read_u32(place, node->items[i], row, &list->items[i]);

        if (result < 0)
            return result;
        list->count++;
    }
    return 0;
}

static int check_text(const struct setting_place *place, const struct yaml_node *node,
                      const struct setting_row *row)
{
    size_t size;

    if (!is_text(node))
        return settings_fail_type(place, node, "text");
    size = strlen(node->text);
    if (row->max > 0 && (size < row->min || size > row->max))
        return settings_fail(place, node->line,
                             "expected text of %" PRIu64 " to %" PRIu64 " bytes, got %zu",
                             row->min, row->max, size);
    return 0;
}

static int check_path(const struct setting_place *place, const struct yaml_node *node)
{
    if (!is_text(node) || node->text[0] != '/')
        return settings_fail_type(place, node, "an absolute path");
    return 0;
}

static int read_text(const struct setting_place *place, const struct yaml_node *node,
                     const struct setting_row *row, void *member)
{
    int result = check_text(place, node, row);

    return result == 0 ? copy_text(node->text, member) : result;
}

static int read_path(const struct setting_place *place, const struct yaml_node *node,
                     const struct setting_row *row, void *member)
{
    int result = check_path(place, node);

    return result == 0 ? copy_text(node->text, member) : result;
}

static int read_texts(const struct setting_place *place, const struct yaml_node *node,
                      const struct setting_row *row, void *member)
{
    struct text_list *list = member;

    if (node->kind != YAML_LIST)
        return settings_fail_type(place, node, "a list");
    list->items = calloc(node->count ? node->count : 1, sizeof(*list->items));
    if (!list->items)
        return -ENOMEM;
    for (size_t i = 0; i < node->count; i++) {
        int result = row->kind == SETTING_PATHS ? check_path(place, node->items[i])
                                                : check_text(place, node->items[i], row);

        if (result == 0)
            result = copy_text(node->items[i]->text, &list->items[i]);
        if (result < 0)
            return result;
        list->count++;
    }
    return 0;
}

static int pair_compare(const void *left, const void *right)
{
    const struct setting_pair *a = left, *b = right;

    return strcmp(a->key, b->key);
}

static int read_map(const struct setting_place *place, const struct yaml_node *node,
                    const struct setting_row *row, void *member)
{
    struct setting_map *map = member;

    if (node->kind != YAML_MAP)
        return settings_fail_type(place, node, "a map");
    map->items = calloc(node->count ? node->count : 1, sizeof(*map->items));
    if (!map->items)
        return -ENOMEM;
    for (size_t i = 0; i < node->count; i++) {
        struct setting_pair *pair = &map->items[map->count++];
        struct setting_place inner = setting_place_inner(place, node->keys[i]->text);
        const struct yaml_node *value = node->items[i];

        if (!is_text(value) || !value->text[0])
            return settings_fail_type(&inner, value, "text that is not empty");
        if (copy_text(node->keys[i]->text, &pair->key) < 0 ||
            copy_text(value->text, &pair->value) < 0)
            return -ENOMEM;
    }
    qsort(map->items, map->count, sizeof(*map->items), pair_compare);
    return 0;
}

#define CAP_ROW(cap)                                                                           \
    {                                                                                          \
        .name = #cap, .kind = SETTING_U32, .standard = "0", .max = UINT32_MAX,                 \
        .offset = offsetof(struct setting_cap, cap)                                            \
    }
static const struct setting_row cap_rows[] = { CAP_ROW(max_cpus), CAP_ROW(max_memory_mb) };

static int cap_compare(const void *left, const void *right)
{
    const struct setting_cap *a = left, *b = right;

    return strcmp(a->name, b->name);
}

static int read_caps(const struct setting_place *place, const struct yaml_node *node,
                     const struct setting_row *row, void *member)
{
    struct setting_caps *caps = member;

    if (node->kind != YAML_MAP)
        return settings_fail_type(place, node, "a map");
    caps->items = calloc(node->count ? node->count : 1, sizeof(*caps->items));
    if (!caps->items)
        return -ENOMEM;
    for (size_t i = 0; i < node->count; i++) {
        struct setting_cap *cap = &caps->items[caps->count++];
        struct setting_place inner = setting_place_inner(place, node->keys[i]->text);
        int result = copy_text(node->keys[i]->text, &cap->name);

        if (result == 0)
            result = settings_read_rows(&inner, node->items[i], cap_rows, ARRAY_SIZE(cap_rows),
                                        cap);
        if (result < 0)
            return result;
    }
    qsort(caps->items, caps->count, sizeof(*caps->items), cap_compare);
    return 0;
}

#define TLS_ROW(file)                                                                          \
    {                                                                                          \
        .name = #file, .kind = SETTING_PATH, .standard = "",                                   \
        .offset = offsetof(struct setting_tls, file)                                           \
    }
static const struct setting_row tls_rows[] = { TLS_ROW(cert), TLS_ROW(key), TLS_ROW(ca) };

static int read_tls(const struct setting_place *place, const struct yaml_node *node,
                    const struct setting_row *row, void *member)
{
    struct setting_tls *tls = member;
    int result = settings_read_rows(place, node, tls_rows, ARRAY_SIZE(tls_rows), tls);

    if (result == 0 && (!tls->cert || !tls->key || !tls->ca))
        return settings_fail(place, node->line, "expected all of cert, key and ca");
    return result;
}

/* Borrowed from the document: its own reader comes later. */
static int read_section(const struct setting_place *place, const struct yaml_node *node,
                        const struct setting_row *row, void *member)
{
    if (node->kind != YAML_MAP)
        return settings_fail_type(place, node, "a map");
    *(const struct yaml_node **)member = node;
    return 0;
}

typedef int (*read_fn)(const struct setting_place *place, const struct yaml_node *node,
                       const struct setting_row *row, void *member);

static const struct {
    read_fn read;
    size_t size; /* of the member */
} kinds[] = {
    [SETTING_BOOL] = { read_bool, sizeof(bool) },
    [SETTING_U32] = { read_u32, sizeof(uint32_t) },
    [SETTING_U64] = { read_u64, sizeof(uint64_t) },
    [SETTING_U32S] = { read_u32s, sizeof(struct setting_numbers) },
    [SETTING_TEXT] = { read_text, sizeof(char *) },
    [SETTING_PATH] = { read_path, sizeof(char *) },
    [SETTING_TEXTS] = { read_texts, sizeof(struct text_list) },
    [SETTING_PATHS] = { read_texts, sizeof(struct text_list) },
    [SETTING_MAP] = { read_map, sizeof(struct setting_map) },
    [SETTING_CAPS] = { read_caps, sizeof(struct setting_caps) },
    [SETTING_TLS] = { read_tls, sizeof(struct setting_tls) },
    [SETTING_SECTION] = { read_section, sizeof(const struct yaml_node *) },
};
static_assert(ARRAY_SIZE(kinds) == SETTING_KIND_MAX, "a reader for each kind");

/* The default of a row, read as the file would be. */
static int read_standard(const struct setting_place *place, const struct setting_row *row,
                         void *member)
{
    struct yaml_node node = { .kind = YAML_SCALAR, .text = (char *)row->standard };

    return row->standard[0] ? kinds[row->kind].read(place, &node, row, member) : 0;
}

static const struct setting_row *row_find(const struct setting_row *rows, size_t row_count,
                                          const char *name)
{
    for (size_t i = 0; i < row_count; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static int check_keys(const struct setting_place *place, const struct yaml_node *map,
                      const struct setting_row *rows, size_t row_count)
{
    for (size_t i = 0; i < map->count; i++) {
        const struct yaml_node *key = map->keys[i];

        if (!row_find(rows, row_count, key->text))
            return settings_fail_unknown(place, key, rows, row_count);
    }
    return 0;
}

int settings_read_rows(const struct setting_place *place, const struct yaml_node *map,
                       const struct setting_row *rows, size_t row_count, void *ret)
{
    if (!is_absent(map)) {
        if (map->kind != YAML_MAP)
            return settings_fail_type(place, map, "a map");
        if (check_keys(place, map, rows, row_count) < 0)
            return -EINVAL;
    }
    for (size_t i = 0; i < row_count; i++) {
        const struct yaml_node *node = yaml_get(map, rows[i].name);
        struct setting_place inner = setting_place_inner(place, rows[i].name);
        void *member = (char *)ret + rows[i].offset;
        int result = is_absent(node) ? read_standard(&inner, &rows[i], member)
                                     : kinds[rows[i].kind].read(&inner, node, &rows[i], member);

        if (result < 0)
            return result;
    }
    return 0;
}

int settings_read(const struct yaml_node *map, const char *prefix,
                  const struct setting_row *rows, size_t row_count, void *ret,
                  char ret_error[SETTINGS_ERROR_MAX])
{
    struct setting_place place = { .error = ret_error, .key = prefix };
    int result;

    for (size_t i = 0; i < row_count; i++)
        memset((char *)ret + rows[i].offset, 0, kinds[rows[i].kind].size);
    result = settings_read_rows(&place, map, rows, row_count, ret);
    if (result == -ENOMEM)
        (void)snprintf(ret_error, SETTINGS_ERROR_MAX, "out of memory");
    if (result < 0)
        settings_release(rows, row_count, ret);
    return result;
}

static void texts_release(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
}

static void map_release(struct setting_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        free(map->items[i].key);
        free(map->items[i].value);
    }
    free(map->items);
}

static void caps_release(struct setting_caps *caps)
{
    for (size_t i = 0; i < caps->count; i++)
        free(caps->items[i].name);
    free(caps->items);
}

static void tls_release(struct setting_tls *tls)
{
    free(tls->cert);
    free(tls->key);
    free(tls->ca);
}

static void member_release(enum setting_kind kind, void *member)
{
    switch (kind) {
    case SETTING_TEXT:
    case SETTING_PATH:
        free(*(char **)member);
        break;
    case SETTING_U32S:
        free(((struct setting_numbers *)member)->items);
        break;
    case SETTING_TEXTS:
    case SETTING_PATHS:
        texts_release(member);
        break;
    case SETTING_MAP:
        map_release(member);
        break;
    case SETTING_CAPS:
        caps_release(member);
        break;
    case SETTING_TLS:
        tls_release(member);
        break;
    case SETTING_BOOL:
    case SETTING_U32:
    case SETTING_U64:
    case SETTING_SECTION:
    case SETTING_KIND_MAX:
        break;
    }
    memset(member, 0, kinds[kind].size);
}

void settings_release(const struct setting_row *rows, size_t row_count, void *values)
{
    for (size_t i = 0; i < row_count; i++)
        member_release(rows[i].kind, (char *)values + rows[i].offset);
}
