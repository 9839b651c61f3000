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

static bool says(const struct case_file *file, const char *key)
{
    return file->settings && yaml_get(file->settings, key);
}

static int write_set(const struct case_file *file, const char *set, struct buf *to)
{
    char key[64];
    const char *equals = strchr(set, '=');
    if (!equals || (size_t)(equals - set) >= sizeof(key))
        return -EINVAL;
    memcpy(key, set, (size_t)(equals - set));
    key[equals - set] = '\0';
    return says(file, key) ? 0 : buf_printf(to, "    %s: %s\n", key, equals + 1);
}

int settings_text(const struct case_file *file, const char *const *sets, size_t set_count,
                  const char *image, struct buf *to)
{
    int ret = 0;
    if (!says(file, "image_allowlist"))
        ret = buf_printf(to, "    image_allowlist: [%s]\n", image);
    for (size_t i = 0; i < set_count && ret == 0; i++)
        ret = write_set(file, sets[i], to);
    for (size_t i = 0; file->settings && i < file->settings->count && ret == 0; i++) {
        ret = buf_printf(to, "    %s: ", file->settings->keys[i]->text);
        if (ret == 0)
            ret = write_node(file->settings->items[i], to);
        if (ret == 0)
            ret = buf_append_byte(to, '\n');
    }
    return ret;
}
