/* glob.c - see glob.h. */
#include "glob.h"

#include <string.h>

#include "utf8.h"

/* A byte that is no character stands for itself. */
static size_t character_size(const char *text)
{
    uint32_t code_point;
    const size_t size = utf8_decode(text, strnlen(text, 4), &code_point, NULL);

    return size ? size : 1;
}

static bool character_equal(const char *a, const char *b)
{
    const size_t size = character_size(a);

    return size == character_size(b) && memcmp(a, b, size) == 0;
}

/* `*` and `?` do not match a slash, so slashes pair up one by one, and the text is only ever
 * left between characters: only the latest star of a part can have to give way. */
static bool match_whole(const char *glob, const char *text)
{
    const char *star = NULL, *star_text = NULL;

    for (;;) {
        if (*glob == '*') {
            while (*glob == '*')
                glob++;
            star = glob;
            star_text = text;
        } else if (*glob == '?' && *text && *text != '/') {
            glob++;
            text += character_size(text);
        } else if (*glob && *glob != '?' && character_equal(glob, text)) {
            star = *glob == '/' ? NULL : star;
            glob += character_size(glob);
            text += character_size(text);
        } else if (!*glob && !*text) {
            return true;
        } else if (star && *star_text && *star_text != '/') {
            star_text += character_size(star_text);
            glob = star;
            text = star_text;
        } else {
            return false;
        }
    }
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The path and each of its tails; the last of those is the last part. */
static bool match_tails(const char *glob, const char *path)
{
    for (;;) {
        if (match_whole(glob, path))
            return true;
        path = strchr(path, '/');
        if (!path)
            return false;
        path++;
    }
}

bool glob_match(const char *glob, const char *relative)
{
    if (strcmp(glob, "**") == 0)
        return true;
    if (strncmp(glob, "**/", 3) == 0)
        return match_tails(glob + 3, relative);
    if (!strchr(glob, '/'))
        return match_whole(glob, last_part(relative));
    return match_whole(glob, relative);
}

static bool match_any(const struct text_list *globs, const char *relative)
{
    for (size_t i = 0; i < globs->count; i++) {
        if (glob_match(globs->items[i], relative))
            return true;
    }
    return false;
}

bool globs_choose(const struct text_list *include, const struct text_list *exclude,
                  const char *relative)
{
    return (include->count == 0 || match_any(include, relative)) &&
           !match_any(exclude, relative);
}

int globs_check(const char *field, const struct text_list *globs, struct sandbox_error *err)
{
    if (globs->count > GLOBS_MAX)
        return sandbox_error_set(err, S210, "`%s` has %zu globs, at most %u are allowed", field,
                                 globs->count, GLOBS_MAX);
    for (size_t i = 0; i < globs->count; i++) {
        const size_t size = strlen(globs->items[i]);

        if (size > GLOB_BYTES_MAX)
            return sandbox_error_set(err, S210,
                                     "`%s[%zu]` has %zu bytes, at most %u are allowed", field,
                                     i, size, GLOB_BYTES_MAX);
    }
    return 0;
}
