/* frozen.c - see frozen.h. */
#include "frozen.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "json_scan.h"

char *frozen_load(const char *name)
{
    char path[512], bytes[8192];
    struct buf text = { 0 };
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof(path), "%s/%s", FROZEN_FOLDER, name);
    file = fopen(path, "re");
    ck_assert_msg(file != NULL, "cannot read %s", path);
    while ((size = fread(bytes, 1, sizeof(bytes), file)) > 0)
        ck_assert_int_eq(buf_append(&text, bytes, size), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_ptr_nonnull(buf_text(&text));
    return (char *)buf_take(&text, NULL);
}

char *frozen_next_line(char **text)
{
    char *line = *text;
    char *end = strchr(line, '\n');

    if (!end)
        return NULL;
    *end = '\0';
    *text = end + 1;
    return line;
}

struct frozen_reply frozen_reply_parse(const char *line)
{
    struct frozen_reply reply = { 0 };
    struct buf name = { 0 };
    struct span object;

    ck_assert_int_eq(json_scan(line, strlen(line), &object, NULL), 0);
    ck_assert_int_eq(json_string_decode(json_get(object, "op"), &name), 0);
    reply.operation = operation_find((const char *)name.data, name.size);
    ck_assert_msg(reply.operation != NULL, "an operation is gone: %s", line);
    reply.body = json_get(object, "reply");
    reply.is_error = !reply.body.data;
    if (reply.is_error)
        reply.body = json_get(object, "error");
    ck_assert_ptr_nonnull(reply.body.data);
    buf_done(&name);
    return reply;
}

char *frozen_reply_find(unsigned minor, const char *name)
{
    char file[64];
    char *found = NULL;
    char *line;

    (void)snprintf(file, sizeof(file), "replies-1.%u.jsonl", minor);
    char *text = frozen_load(file);
    for (char *rest = text; !found && (line = frozen_next_line(&rest)) != NULL;) {
        struct frozen_reply reply = frozen_reply_parse(line);

        if (!reply.is_error && strcmp(reply.operation->name, name) == 0)
            found = strndup(reply.body.data, reply.body.size);
    }
    free(text);
    ck_assert_msg(found != NULL, "minor %u has no recorded reply of %s", minor, name);
    return found;
}
