/* path.c - see path.h. */
#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int path_init(struct path *path, const char *field, const char *text, struct sandbox_error *err)
{
    size_t size = strlen(text);
    char *slash;

    if (size == 0 || size > PATH_BYTES_MAX)
        return sandbox_error_set(err, S210, "`%s` wants 1 to %u bytes, got %zu", field,
                                 PATH_BYTES_MAX, size);
    if (text[0] != '/')
        return sandbox_error_set(err, S210, "`%s` wants an absolute path, got %s", field, text);
    while (size > 1 && text[size - 1] == '/')
        size--;
    memcpy(path->text, text, size);
    path->text[size] = 0;
    slash = strrchr(path->text, '/');
    path->parent_size = slash == path->text ? 1 : (size_t)(slash - path->text);
    path->name = size == 1 ? path->text : slash + 1;
    return 0;
}

int path_open_parent(const struct path *path)
{
    char parent[PATH_BYTES_MAX + 1];
    int fd;

    memcpy(parent, path->text, path->parent_size);
    parent[path->parent_size] = 0;
    fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

const char *path_name_at(const struct path *path)
{
    return path->name == path->text ? "." : path->name;
}

int mode_parse(const char *text, mode_t *ret_mode, struct sandbox_error *err)
{
    mode_t mode = 0;
    size_t size = 0;

    while (text[size] >= '0' && text[size] <= '7' && size < 6)
        mode = mode << 3 | (mode_t)(text[size++] - '0');
    if (size == 0 || size > 5 || text[size] || mode > 07777)
        return sandbox_error_set(
            err, S210, "`mode` wants 1 to 5 octal digits up to 07777, got \"%s\"", text);
    *ret_mode = mode;
    return 0;
}

void mode_format(mode_t mode, char ret_text[MODE_TEXT_BYTES])
{
    (void)snprintf(ret_text, MODE_TEXT_BYTES, "%04o", (unsigned)(mode & 07777));
}
