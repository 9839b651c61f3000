/* yaml.c - see yaml.h. libyaml's events become a tree; every limit is checked as they come. */
#include "yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "buf.h"
#include "file.h"
#include "table.h"

#define YAML_MAX_BYTES (1024u * 1024)
#define YAML_MAX_DEPTH 32
#define YAML_MAX_NODES 65536u

struct reader {
    yaml_parser_t parser;
    size_t nodes;
    char *error;
    size_t error_size;
};

static int read_node(struct reader *reader, const yaml_event_t *event, unsigned depth,
                     struct yaml_node **ret_node);

/* Errors: the first one ends the reading, so each is written once. */

static int fail(struct reader *reader, int result, unsigned line, const char *format, ...)
    _printf_(4, 5);

static int fail(struct reader *reader, int result, unsigned line, const char *format, ...)
{
    char why[160];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    (void)snprintf(reader->error, reader->error_size, "line %u: %s", line, why);
    return result;
}

static int fail_memory(char *error, size_t error_size)
{
    (void)snprintf(error, error_size, "out of memory");
    return -ENOMEM;
}

static int fail_parser(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;

    if (parser->error == YAML_MEMORY_ERROR)
        return fail_memory(reader->error, reader->error_size);
    return fail(reader, -EINVAL, (unsigned)parser->problem_mark.line + 1, "%s",
                parser->problem ? parser->problem : "not YAML");
}

static unsigned line_of(const yaml_event_t *event)
{
    return (unsigned)event->start_mark.line + 1;
}

static int next_event(struct reader *reader, yaml_event_t *ret_event)
{
    return yaml_parser_parse(&reader->parser, ret_event) ? 0 : fail_parser(reader);
}

/* Nodes. */

void yaml_free(struct yaml_node *root)
{
    if (!root)
        return;
    for (size_t i = 0; i < root->count; i++) {
        if (root->keys)
            yaml_free(root->keys[i]);
        yaml_free(root->items[i]);
    }
    free(root->keys);
    free(root->items);
    free(root->text);
    free(root);
}

static int node_new(struct reader *reader, enum yaml_kind kind, unsigned line,
                    struct yaml_node **ret_node)
{
    struct yaml_node *node;

    if (++reader->nodes > YAML_MAX_NODES)
        return fail(reader, -E2BIG, line, "more than %u nodes", YAML_MAX_NODES);
    node = calloc(1, sizeof(*node));
    if (!node)
        return fail_memory(reader->error, reader->error_size);
    node->kind = kind;
    node->line = line;
    *ret_node = node;
    return 0;
}

/* Room for one more item and, in a map, its key. Sizes double: at 0, 1, 2, 4, … */
static int node_grow(struct reader *reader, struct yaml_node *node)
{
    size_t capacity = node->count ? node->count * 2 : 1;
    struct yaml_node **grown;

    if ((node->count & (node->count - 1)) != 0)
        return 0;
    grown = realloc(node->items, capacity * sizeof(*grown));
    if (!grown)
        return fail_memory(reader->error, reader->error_size);
    node->items = grown;
    if (node->kind != YAML_MAP)
        return 0;
    grown = realloc(node->keys, capacity * sizeof(*grown));
    if (!grown)
        return fail_memory(reader->error, reader->error_size);
    node->keys = grown;
    return 0;
}

static bool text_is_null(const char *text)
{
    return text[0] == 0 || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

static int refuse_properties(struct reader *reader, unsigned line, const void *anchor,
                             const void *tag)
{
    if (anchor)
        return fail(reader, -EINVAL, line, "anchors and aliases are not supported");
    if (tag)
        return fail(reader, -EINVAL, line, "tags are not supported");
    return 0;
}

static int read_scalar(struct reader *reader, const yaml_event_t *event,
                       struct yaml_node **ret_node)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    bool null = !quoted && text_is_null(text);
    unsigned line = line_of(event);
    _cleanup_(yaml_freep)
    struct yaml_node *node = NULL;
    int result = refuse_properties(reader, line, event->data.scalar.anchor,
                                   event->data.scalar.tag);

    if (result == 0 && strlen(text) != length)
        result = fail(reader, -EINVAL, line, "a NUL character in a value");
    if (result == 0)
        result = node_new(reader, null ? YAML_NULL : YAML_SCALAR, line, &node);
    if (result < 0)
        return result;
    node->quoted = quoted;
    node->text = strdup(text);
    if (!node->text)
        return fail_memory(reader->error, reader->error_size);
    *ret_node = take_ptr(node);
    return 0;
}

/* Lists and maps: read from their start event, already taken, to their end event. */

static int read_list_items(struct reader *reader, struct yaml_node *list, unsigned depth)
{
    for (;;) {
        struct yaml_node *item;
        yaml_event_t event;
        int result = next_event(reader, &event);

        if (result < 0)
            return result;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        result = node_grow(reader, list);
        if (result == 0)
            result = read_node(reader, &event, depth + 1, &item);
        yaml_event_delete(&event);
        if (result < 0)
            return result;
        list->items[list->count++] = item;
    }
}

/* A key is text as it stands, `null` too. */
static int read_key(struct reader *reader, const yaml_event_t *event, struct table *seen,
                    struct yaml_node **ret_key)
{
    _cleanup_(yaml_freep)
    struct yaml_node *key = NULL;
    int result;

    if (event->type != YAML_SCALAR_EVENT)
        return fail(reader, -EINVAL, line_of(event), "a key must be plain text");
    result = read_scalar(reader, event, &key);
    if (result < 0)
        return result;
    if (key->text[0] == 0)
        return fail(reader, -EINVAL, key->line, "an empty key");
    key->kind = YAML_SCALAR;
    result = table_put_text(seen, key->text, key);
    if (result == -EEXIST)
        return fail(reader, -EINVAL, key->line, "duplicate key %s", key->text);
    if (result < 0)
        return fail_memory(reader->error, reader->error_size);
    *ret_key = take_ptr(key);
    return 0;
}

static int read_pair(struct reader *reader, const yaml_event_t *key_event, unsigned depth,
                     struct table *seen, struct yaml_node *map)
{
    _cleanup_(yaml_freep)
    struct yaml_node *key = NULL;
    struct yaml_node *value;
    yaml_event_t event;
    int result = read_key(reader, key_event, seen, &key);

    if (result == 0)
        result = node_grow(reader, map);
    if (result == 0)
        result = next_event(reader, &event);
    if (result < 0)
        return result;
    result = read_node(reader, &event, depth + 1, &value);
    yaml_event_delete(&event);
    if (result < 0)
        return result;
    map->items[map->count] = value;
    map->keys[map->count++] = take_ptr(key);
    return 0;
}

static int read_map_items(struct reader *reader, struct yaml_node *map, unsigned depth)
{
    _cleanup_(table_freep)
    struct table *seen = NULL;

    if (table_new(&seen) < 0)
        return fail_memory(reader->error, reader->error_size);
    for (;;) {
        yaml_event_t event;
        int result = next_event(reader, &event);

        if (result < 0)
            return result;
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        result = read_pair(reader, &event, depth, seen, map);
        yaml_event_delete(&event);
        if (result < 0)
            return result;
    }
}

static int read_collection(struct reader *reader, const yaml_event_t *event, unsigned depth,
                           struct yaml_node **ret_node)
{
    bool map = event->type == YAML_MAPPING_START_EVENT;
    _cleanup_(yaml_freep)
    struct yaml_node *node = NULL;
    unsigned line = line_of(event);
    int result = map ? refuse_properties(reader, line, event->data.mapping_start.anchor,
                                         event->data.mapping_start.tag)
                     : refuse_properties(reader, line, event->data.sequence_start.anchor,
                                         event->data.sequence_start.tag);

    if (result == 0 && depth >= YAML_MAX_DEPTH)
        result = fail(reader, -E2BIG, line, "nested deeper than %d", YAML_MAX_DEPTH);
    if (result == 0)
        result = node_new(reader, map ? YAML_MAP : YAML_LIST, line, &node);
    if (result == 0)
        result = map ? read_map_items(reader, node, depth)
                     : read_list_items(reader, node, depth);
    if (result == 0)
        *ret_node = take_ptr(node);
    return result;
}

/* DEPTH: how many collections are around it; YAML_MAX_DEPTH bounds the recursion. */
static int read_node(struct reader *reader, const yaml_event_t *event, unsigned depth,
                     struct yaml_node **ret_node)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(reader, event, ret_node);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return read_collection(reader, event, depth, ret_node);
    case YAML_ALIAS_EVENT:
        return fail(reader, -EINVAL, line_of(event), "anchors and aliases are not supported");
    default:
        return fail(reader, -EINVAL, line_of(event), "a value is missing");
    }
}

/* Documents. */

/* The root of the first document; a second one is an error. */
static int read_stream(struct reader *reader, struct yaml_node **ret_root)
{
    _cleanup_(yaml_freep)
    struct yaml_node *root = NULL;
    yaml_event_type_t type = YAML_NO_EVENT;
    int result = 0;

    while (result == 0 && type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;

        result = next_event(reader, &event);
        if (result < 0)
            return result;
        type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT && root)
            result = fail(reader, -EINVAL, line_of(&event), "more than one document");
        else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                 type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
            result = read_node(reader, &event, 0, &root);
        yaml_event_delete(&event);
    }
    if (result == 0 && !root)
        result = node_new(reader, YAML_NULL, 1, &root);
    if (result == 0)
        *ret_root = take_ptr(root);
    return result;
}

int yaml_parse(const char *text, size_t size, struct yaml_node **ret_root, char *error,
               size_t error_size)
{
    struct reader reader = { .error = error, .error_size = error_size };
    int result;

    if (size > YAML_MAX_BYTES)
        return fail(&reader, -E2BIG, 1, "more than %u bytes", YAML_MAX_BYTES);
    if (!yaml_parser_initialize(&reader.parser))
        return fail_memory(error, error_size);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
    result = read_stream(&reader, ret_root);
    yaml_parser_delete(&reader.parser);
    return result;
}

int yaml_load(const char *path, struct yaml_node **ret_root, char *error, size_t error_size)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result = file_read(path, YAML_MAX_BYTES, &text);

    if (result == -EFBIG)
        (void)snprintf(error, error_size, "more than %u bytes", YAML_MAX_BYTES);
    else if (result < 0)
        (void)snprintf(error, error_size, "%s", file_read_problem(result));
    if (result < 0)
        return result;
    return yaml_parse((const char *)text.data, text.size, ret_root, error, error_size);
}

/* Look-ups. */

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
    if (!map || map->kind != YAML_MAP)
        return NULL;
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->keys[i]->text, key) == 0)
            return map->items[i];
    }
    return NULL;
}

static bool is_plain(const struct yaml_node *node)
{
    return node && node->kind == YAML_SCALAR && !node->quoted;
}

int yaml_as_bool(const struct yaml_node *node, bool *ret_value)
{
    if (!is_plain(node))
        return -EINVAL;
    if (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)
        return -EINVAL;
    *ret_value = node->text[0] == 't';
    return 0;
}

int yaml_as_u64(const struct yaml_node *node, uint64_t *ret_value)
{
    const char *digits;
    uint64_t value = 0;
    bool negative, over = false;

    if (!is_plain(node))
        return -EINVAL;
    negative = node->text[0] == '-';
    digits = node->text + negative;
    if (digits[0] == 0 || (digits[0] == '0' && digits[1] != 0))
        return -EINVAL;
    for (; *digits; digits++) {
        if (*digits < '0' || *digits > '9')
            return -EINVAL;
        over = over || __builtin_mul_overflow(value, 10u, &value) ||
               __builtin_add_overflow(value, (uint64_t)(*digits - '0'), &value);
    }
    if (over || (negative && value > 0))
        return -ERANGE;
    *ret_value = value;
    return 0;
}
