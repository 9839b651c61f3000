/* settings_text.c - see settings_text.h. Written in flow style, which needs no indentation. */

#include "settings_text.h"

#include <errno.h>
#include <string.h>

static int write_scalar(const struct yaml_node *node, struct buf *to)
{
    if (node->kind == YAML_NULL)
        return 0;
    if (!node->quoted)
        return buf_append_text(to, node->text);
    int ret = buf_append_byte(to, '"');
    for (const char *text = node->text; *text && ret == 0; text++) {
        if (*text == '"' || *text == '\\')
            ret = buf_append_byte(to, '\\');
        if (ret == 0)
            ret = buf_append_byte(to, (uint8_t)*text);
    }
    return ret < 0 ? ret : buf_append_byte(to, '"');
}

static int write_node(const struct yaml_node *node, struct buf *to)
{
    if (node->kind == YAML_SCALAR || node->kind == YAML_NULL)
        return write_scalar(node, to);
    bool map = node->kind == YAML_MAP;
    int ret = buf_append_byte(to, map ? '{' : '[');
    for (size_t i = 0; i < node->count && ret == 0; i++) {
        if (i > 0)
            ret = buf_append_text(to, ", ");
        if (ret == 0 && map)
            ret = write_scalar(node->keys[i], to);
        if (ret == 0 && map)
            ret = buf_append_text(to, ": ");
        if (ret == 0)
            ret = write_node(node->items[i], to);
    }
    return ret < 0 ? ret : buf_append_byte(to, map ? '}' : ']');
}

static bool says(const struct yaml_node *map, const char *key)
{
    return map && yaml_get(map, key);
}

static bool is_said(const struct settings_source *source, const struct yaml_node *changes,
                    const char *key)
{
    return says(changes, key) || says(source->file->settings, key);
}

static int write_set(const struct settings_source *source, const struct yaml_node *changes,
                     const char *set, struct buf *to)
{
    char key[64];
    const char *equals = strchr(set, '=');
    if (!equals || (size_t)(equals - set) >= sizeof(key))
        return -EINVAL;
    memcpy(key, set, (size_t)(equals - set));
    key[equals - set] = '\0';
    return is_said(source, changes, key) ? 0 : buf_printf(to, "    %s: %s\n", key, equals + 1);
}

/* Lines of MAP, indented by INDENT, without the keys that BUT has. */
static int write_map(const struct yaml_node *map, const struct yaml_node *but, int indent,
                     struct buf *to)
{
    int ret = 0;
    for (size_t i = 0; map && i < map->count && ret == 0; i++) {
        if (says(but, map->keys[i]->text))
            continue;
        ret = buf_printf(to, "%*s%s: ", indent, "", map->keys[i]->text);
        if (ret == 0)
            ret = write_node(map->items[i], to);
        if (ret == 0)
            ret = buf_append_byte(to, '\n');
    }
    return ret;
}

static int write_all(const struct settings_source *source, const struct yaml_node *changes,
                     struct buf *to)
{
    int ret = 0;
    if (!is_said(source, changes, "image_allowlist"))
        ret = buf_printf(to, "    image_allowlist: [%s]\n", source->image);
    for (size_t i = 0; i < source->set_count && ret == 0; i++)
        ret = write_set(source, changes, source->sets[i], to);
    if (ret == 0)
        ret = write_map(source->file->settings, changes, 4, to);
    return ret < 0 ? ret : write_map(changes, NULL, 4, to);
}

int settings_text(const struct settings_source *source, const struct yaml_node *changes,
                  struct buf *to)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int ret = write_all(source, changes, &text);
    return ret < 0 ? ret : variables_expand(source->variables, buf_text(&text), to);
}

int settings_section_text(const struct case_file *file, const char *section, struct buf *to)
{
    int ret = section ? buf_printf(to, "%s\n", section) : 0;
    return ret < 0 ? ret : write_map(file->section, NULL, 2, to);
}
