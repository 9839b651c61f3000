/* fuzz_agent_glob.c - globs against a slow and plain matcher that tries everything. */
#include <stdlib.h>
#include <string.h>

#include "glob.h"
#include "utf8.h"

#define TEXT_BYTES_MAX 20u /* the plain matcher is exponential */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t character(const char *text)
{
    uint32_t code_point;
    size_t size = utf8_decode(text, strnlen(text, 4), &code_point, NULL);

    return size ? size : 1;
}

static bool plain(const char *glob, const char *text)
{
    if (!*glob)
        return !*text;
    if (*glob == '*' && glob[1] == '*')
        return plain(glob + 1, text);
    if (*glob == '*')
        return plain(glob + 1, text) ||
               (*text && *text != '/' && plain(glob, text + character(text)));
    if (*glob == '?')
        return *text && *text != '/' && plain(glob + 1, text + character(text));
    return *text && character(glob) == character(text) &&
           memcmp(glob, text, character(text)) == 0 &&
           plain(glob + character(glob), text + character(text));
}

static bool plain_rules(const char *glob, const char *path)
{
    const char *last = strrchr(path, '/');

    if (strcmp(glob, "**") == 0)
        return true;
    if (strncmp(glob, "**/", 3) == 0) {
        for (const char *tail = path;; tail++) {
            if (tail == path || tail[-1] == '/') {
                if (plain(glob + 3, tail))
                    return true;
            }
            if (!*tail)
                return false;
        }
    }
    if (!strchr(glob, '/'))
        return plain(glob, last ? last + 1 : path);
    return plain(glob, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char glob[TEXT_BYTES_MAX + 1], path[TEXT_BYTES_MAX + 1];
    const uint8_t *split = memchr(data, 0, size);
    size_t glob_size = split ? (size_t)(split - data) : size;
    size_t path_size = split ? size - glob_size - 1 : 0;

    if (glob_size > TEXT_BYTES_MAX || path_size > TEXT_BYTES_MAX)
        return 0;
    memcpy(glob, data, glob_size);
    glob[glob_size] = 0;
    if (path_size > 0)
        memcpy(path, split + 1, path_size);
    path[path_size] = 0;
    if (glob_match(glob, path) != plain_rules(glob, path))
        abort();
    return 0;
}
