/* manifest.c - see manifest.h. */
#include "manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "yaml.h"

#define NAME_MAX_BYTES 128u
#define IMAGE_MAX_BYTES 512u
#define ERROR_MAX_BYTES 512

/* Where something is wrong. */
struct place {
    const char *path;
    struct sandbox_error *err;
};

enum row_kind { ROW_TEXT, ROW_U32 };

/* A key of the manifest: its value is read into the member at OFFSET. */
struct row {
    const char *section; /* NULL: top level */
    const char *key;
    enum row_kind kind;
    size_t offset;
    uint64_t min, max; /* bytes of a text, or value */
};

#define ROW(section, key, kind, member, min, max)                                              \
    {                                                                                          \
        section, key, kind, offsetof(struct manifest, member), min, max                        \
    }
static const struct row rows[] = {
    ROW(NULL, "name", ROW_TEXT, name, 1, NAME_MAX_BYTES),
    ROW("runtime", "base_image", ROW_TEXT, base_image, 1, IMAGE_MAX_BYTES),
    ROW("resources", "cpus", ROW_U32, cpus, 1, UINT32_MAX),
    ROW("resources", "memory", ROW_U32, memory_mb, 128, UINT32_MAX),
    ROW("scripts", "setup", ROW_TEXT, setup, 0, LIMIT_PROGRAM_TEXT_BYTES),
    ROW("scripts", "install", ROW_TEXT, install, 0, LIMIT_PROGRAM_TEXT_BYTES),
    ROW("scripts", "start", ROW_TEXT, start, 1, LIMIT_PROGRAM_TEXT_BYTES),
};
#undef ROW

static const char *const reserved[] = { "III_URL", "III_ENGINE_URL", "III_WORKER_NAME" };

bool manifest_name_reserved(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
        if (strlen(reserved[i]) == size && memcmp(reserved[i], name, size) == 0)
            return true;
    }
    return false;
}

/* S501 with the place; KEY may be NULL. */
static _printf_(4, 5) int refuse(const struct place *place, unsigned line, const char *key,
                                 const char *format, ...)
{
    char why[ERROR_MAX_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, sizeof(why), format, arguments); /* cut is fine in a message */
    va_end(arguments);
    return sandbox_error_set(place->err, S501, "%s: line %u: %s%s%s", place->path, line,
                             key ? key : "", key ? ": " : "", why);
}

static int no_memory(const struct place *place)
{
    return sandbox_error_set(place->err, S300, "%s: no memory", place->path);
}

static const char *kind_name(const struct yaml_node *node)
{
    static const char *const names[] = {
        [YAML_NULL] = "nothing",
        [YAML_SCALAR] = "a number or truth value",
        [YAML_LIST] = "a list",
        [YAML_MAP] = "a map",
    };

    return names[node->kind];
}

/* A scalar that YAML does not take for something else. */
static bool is_text(const struct yaml_node *node)
{
    uint64_t number;
    bool flag;

    return node->kind == YAML_SCALAR && yaml_as_bool(node, &flag) < 0 &&
           yaml_as_u64(node, &number) == -EINVAL;
}

static int read_text(const struct place *place, const struct yaml_node *node, const char *key,
                     const struct row *row, char **member)
{
    size_t size;

    if (!is_text(node))
        return refuse(place, node->line, key, "expected text, got %s", kind_name(node));
    size = strlen(node->text);
    if (size < row->min || size > row->max)
        return refuse(place, node->line, key,
                      "expected text of %" PRIu64 " to %" PRIu64 " bytes, got %zu", row->min,
                      row->max, size);
    *member = strdup(node->text);
    return *member ? 0 : no_memory(place);
}

static int read_u32(const struct place *place, const struct yaml_node *node, const char *key,
                    const struct row *row, uint32_t *member)
{
    uint64_t value = 0;
    int result = yaml_as_u64(node, &value);

    if (result == -ERANGE || (result == 0 && (value < row->min || value > row->max)))
        return refuse(place, node->line, key, "expected %" PRIu64 " to %" PRIu64 ", got %.40s",
                      row->min, row->max, node->text);
    if (result < 0)
        return refuse(place, node->line, key, "expected a number, got %s",
                      is_text(node) ? "text" : kind_name(node));
    *member = (uint32_t)value;
    return 0;
}

/* NULL: not there, or nothing in it. */
static const struct yaml_node *get(const struct yaml_node *map, const char *key)
{
    const struct yaml_node *node = map ? yaml_get(map, key) : NULL;

    return node && node->kind != YAML_NULL ? node : NULL;
}

static int read_row(const struct place *place, const struct yaml_node *root,
                    const struct row *row, struct manifest *manifest)
{
    const struct yaml_node *map = row->section ? get(root, row->section) : root;
    const struct yaml_node *node;
    void *member = (char *)manifest + row->offset;
    char key[64];

    if (map && map->kind != YAML_MAP)
        return refuse(place, map->line, row->section, "expected a map, got %s",
                      is_text(map) ? "text" : kind_name(map));
    node = get(map, row->key);
    if (!node)
        return 0;
    (void)snprintf(key, sizeof(key), "%s%s%s", row->section ? row->section : "",
                   row->section ? "." : "", row->key);
    return row->kind == ROW_TEXT ? read_text(place, node, key, row, member)
                                 : read_u32(place, node, key, row, member);
}

static bool name_valid(const char *name)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char rest[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

    return *name && strchr(first, *name) && name[strspn(name, rest)] == 0;
}

static int read_variable(const struct place *place, const struct yaml_node *name,
                         const struct yaml_node *value, struct text_list *env)
{
    _cleanup_free_ char *entry = NULL;
    char key[80];

    (void)snprintf(key, sizeof(key), "env.%.64s", name->text);
    if (!name_valid(name->text))
        return refuse(place, name->line, key, "names must match [A-Za-z_][A-Za-z0-9_]*");
    if (manifest_name_reserved(name->text, strlen(name->text)))
        return refuse(place, name->line, key, "this name is set by the adapter");
    if (!is_text(value))
        return refuse(place, value->line, key, "expected text, got %s", kind_name(value));
    if (strlen(value->text) > LIMIT_PROGRAM_TEXT_BYTES)
        return refuse(place, value->line, key, "expected at most %d bytes, got %zu",
                      LIMIT_PROGRAM_TEXT_BYTES, strlen(value->text));
    if (asprintf(&entry, "%s=%s", name->text, value->text) < 0) {
        entry = NULL;
        return no_memory(place);
    }
    return text_list_append(env, entry) < 0 ? no_memory(place) : 0;
}

static int read_env(const struct place *place, const struct yaml_node *root,
                    struct manifest *manifest)
{
    const struct yaml_node *map = get(root, "env");

    if (!map)
        return 0;
    if (map->kind != YAML_MAP)
        return refuse(place, map->line, "env", "expected a map, got %s",
                      is_text(map) ? "text" : kind_name(map));
    for (size_t i = 0; i < map->count; i++) {
        if (read_variable(place, map->keys[i], map->items[i], &manifest->env) < 0)
            return -1;
    }
    return 0;
}

static int read_manifest(const struct place *place, const struct yaml_node *root,
                         struct manifest *manifest)
{
    if (root->kind != YAML_MAP)
        return refuse(place, root->line ? root->line : 1, NULL, "expected a map");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (read_row(place, root, &rows[i], manifest) < 0)
            return -1;
    }
    if (!manifest->name)
        return refuse(place, root->line, "name", "is required");
    return read_env(place, root, manifest);
}

int manifest_parse(const char *path, const char *text, size_t size,
                   struct manifest *ret_manifest, struct sandbox_error *err)
{
    _cleanup_(yaml_freep)
    struct yaml_node *root = NULL;
    _cleanup_(manifest_done)
    struct manifest manifest = {
        .cpus = MANIFEST_CPUS_DEFAULT,
        .memory_mb = MANIFEST_MEMORY_MB_DEFAULT,
    };
    const struct place place = { .path = path, .err = err };
    char why[ERROR_MAX_BYTES];
    int result = yaml_parse(text, size, &root, why, sizeof(why));

    *ret_manifest = (struct manifest){ 0 };
    if (result == -ENOMEM)
        return no_memory(&place);
    if (result < 0)
        return sandbox_error_set(err, S501, "%s: %s", path, why);
    if (read_manifest(&place, root, &manifest) < 0)
        return -1;
    *ret_manifest = manifest;
    manifest = (struct manifest){ 0 };
    return 0;
}

void manifest_done(struct manifest *manifest)
{
    free(manifest->name);
    free(manifest->base_image);
    free(manifest->setup);
    free(manifest->install);
    free(manifest->start);
    text_list_done(&manifest->env);
    *manifest = (struct manifest){ 0 };
}
