/* localhost.c - see localhost.h. */
#include "localhost.h"

#include <string.h>

#include "buf.h"

static const char *const hosts[] = { "localhost", "127.0.0.1" };

/* How long the host at TEXT is when it is one that means the host itself, its colon excluded.
 */
static size_t local_host_size(const char *text)
{
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        size_t size = strlen(hosts[i]);

        if (strncmp(text, hosts[i], size) == 0 && text[size] == ':')
            return size;
    }
    return 0;
}

char *localhost_rewrite(const char *value, const char *gateway)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    const char *scheme_end;
    size_t host;
    int result = 0;

    while (result == 0 && (scheme_end = strstr(value, "://"))) {
        scheme_end += strlen("://");
        result = buf_append(&text, value, (size_t)(scheme_end - value));
        host = local_host_size(scheme_end);
        if (result == 0 && host > 0)
            result = buf_append_text(&text, gateway);
        value = scheme_end + host;
    }
    if (result == 0)
        result = buf_append_text(&text, value);
    return result == 0 ? (char *)buf_take(&text, NULL) : NULL;
}
