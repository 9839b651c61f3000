/* env.c - the environment of a request (contract 4.3): names, and entries as a program gets
 * them. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"

static bool name_valid(const char *name)
{
    if (!isascii(*name) || (!isalpha(*name) && *name != '_'))
        return false;
    for (name++; *name; name++) {
        if (!isascii(*name) || (!isalnum(*name) && *name != '_'))
            return false;
    }
    return true;
}

int env_check(const struct env *env, struct sandbox_error *err)
{
    struct buf bad = { .limit = ERROR_MESSAGE_MAX }; /* more would be cut from the message */
    size_t bad_count = 0;
    const char *names;

    for (size_t i = 0; env->is_object && i < env->count; i++) {
        const char *name = env->entries[i].name;

        if (name_valid(name))
            continue;
        /* What does not fit any more is counted, and the message shows that it was cut. */
        if (bad_count++ > 0)
            (void)buf_append_text(&bad, ", ");
        (void)json_append_string(&bad, name, strlen(name));
    }
    if (bad_count == 0)
        return 0;
    names = buf_text(&bad);
    (void)sandbox_error_set(err, S001,
                            "env: names must match [A-Za-z_][A-Za-z0-9_]*, got %zu bad: %s",
                            bad_count, names ? names : "");
    buf_done(&bad);
    return -1;
}

int env_append(const struct env *env, struct text_list *to)
{
    for (size_t i = 0; i < env->count; i++) {
        const struct env_entry *entry = &env->entries[i];
        _cleanup_free_ char *text = NULL;

        if (!entry->value || entry->name[0] == 0)
            continue;
        if (asprintf(&text, "%s=%s", entry->name, entry->value) < 0) {
            text = NULL;
            return -ENOMEM;
        }
        if (text_list_append(to, text) < 0)
            return -ENOMEM;
    }
    return 0;
}
