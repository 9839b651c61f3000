/* settings_check.c - what settings mean beyond their types (contract 11.1, 11.2, 7.2), and the
 * defaults that depend on the process: its user and its environment. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings_parts.h"
#include "span.h"
#include "utf8.h"

/* Contract 11.2: a reply holds two streams, each byte of which may become six of JSON. */
#define OUTPUT_REPLY_OVERHEAD_BYTES 65536u
#define OUTPUT_REPLY_FACTOR 12u

/* The value of KEY is wrong; where it is a default, the map's line has to do. */
static int fail_key(const struct setting_section *section, const char *key, const char *format,
                    ...) _printf_(3, 4);

static int fail_key(const struct setting_section *section, const char *key, const char *format,
                    ...)
{
    struct setting_place place = setting_place_inner(&section->place, key);
    const struct yaml_node *node = yaml_get(section->map, key);
    char why[256];
    va_list arguments;

    if (!node)
        node = section->map;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    return settings_fail(&place, node ? node->line : 1, "%s", why);
}

/* A pair of the map KEY is wrong. */
static int fail_pair(const struct setting_section *section, const char *key, const char *name,
                     const char *why)
{
    struct setting_place place = setting_place_inner(&section->place, key);
    struct setting_place inner = setting_place_inner(&place, name);
    const struct yaml_node *node = yaml_get(yaml_get(section->map, key), name);

    return settings_fail(&inner, node->line, "%s", why);
}

/* A port in decimal, nothing else. */
static bool port_valid(const char *text)
{
    unsigned long port = 0;
    size_t i = 0;

    for (; text[i] >= '0' && text[i] <= '9' && i < 6; i++)
        port = port * 10 + (unsigned long)(text[i] - '0');
    return i > 0 && text[i] == 0 && port <= 65535;
}

/* HOST:PORT, HOST in brackets when it has colons. PORT may be missing if OPTIONAL_PORT. */
static bool address_valid(const char *text, bool optional_port)
{
    const char *host_end = text[0] == '[' ? strchr(text, ']') : strchr(text, ':');

    if (!text[0] || strchr(text, '/') || utf8_has_space(text, strlen(text)))
        return false;
    if (text[0] == '[') {
        if (!host_end || host_end == text + 1)
            return false;
        host_end++;
    } else if (!host_end) {
        return optional_port;
    }
    if (*host_end == 0)
        return optional_port;
    return host_end > text && *host_end == ':' && port_valid(host_end + 1);
}

static int check_addresses(const struct setting_section *section, const char *key,
                           const struct text_list *list, bool optional_port)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!address_valid(list->items[i], optional_port))
            return fail_key(section, key, "expected HOST%s, got %.100s",
                            optional_port ? "[:PORT]" : ":PORT", list->items[i]);
    }
    return 0;
}

static int fill_listen(const struct setting_section *section, struct text_list *listen)
{
    static const char *const standard[] = { "127.0.0.1:49134", "[::1]:49134" };

    if (yaml_get(section->map, "listen"))
        return 0;
    free(listen->items);
    listen->items = calloc(ARRAY_SIZE(standard), sizeof(*listen->items));
    if (!listen->items)
        return -ENOMEM;
    for (; listen->count < ARRAY_SIZE(standard); listen->count++) {
        listen->items[listen->count] = strdup(standard[listen->count]);
        if (!listen->items[listen->count])
            return -ENOMEM;
    }
    return 0;
}

#define TLS_SCHEME "tls+tcp://"

static int check_adapter_listen(const struct setting_section *section,
                                const struct router_settings *router)
{
    const char *url = router->adapter_listen;

    if (!url)
        return 0;
    if (!span_starts_with(span_of_text(url), TLS_SCHEME) ||
        !address_valid(url + strlen(TLS_SCHEME), false))
        return fail_key(section, "adapter_listen",
                        "expected " TLS_SCHEME "HOST:PORT, got %.100s", url);
    if (!router->tls.cert)
        return fail_key(section, "tls", "is needed with adapter_listen: {cert, key, ca}");
    return 0;
}

/* The name is a part of function names. */
static int check_adapter_name(const struct setting_section *section, const char *name)
{
    if (!name)
        return 0;
    if (!name[0] || strchr(name, ':') || utf8_has_space(name, strlen(name)))
        return fail_key(section, "adapter",
                        "expected a name without colons and white space, got \"%.100s\"", name);
    return 0;
}

static int check_command(const struct setting_section *section, const struct text_list *command)
{
    if (command->count > 0 && !command->items[0][0])
        return fail_key(section, "command", "expected a program as the first text, got \"\"");
    return 0;
}

static int check_docs_base(const struct setting_section *section, const char *docs_base)
{
    size_t size = strlen(docs_base);

    if (size == 0 || docs_base[size - 1] != '#')
        return fail_key(section, "docs_base", "expected text that ends in #, got %.100s",
                        docs_base);
    return 0;
}

/* Where a user's files of one kind go. */
struct directory_rule {
    const char *for_root;
    const char *variable; /* of the base directory */
    const char
        *below_home; /* used when the variable is not set; NULL: nothing to fall back to */
};

static int fill_directory(const struct setting_section *section, const char *key,
                          const struct directory_rule *rule, char **directory)
{
    const char *base = getenv(rule->variable);
    const char *home = getenv("HOME");
    int size;

    if (*directory)
        return 0;
    if (geteuid() == 0)
        size = asprintf(directory, "%s/iii-sandbox", rule->for_root);
    else if (base && base[0] == '/')
        size = asprintf(directory, "%s/iii-sandbox", base);
    else if (rule->below_home && home && home[0] == '/')
        size = asprintf(directory, "%s/%s/iii-sandbox", home, rule->below_home);
    else
        return fail_key(section, key, "has no default here: %s is not set", rule->variable);
    if (size < 0)
        *directory = NULL;
    return size < 0 ? -ENOMEM : 0;
}

int settings_check_router(const struct setting_section *section, struct router_settings *router)
{
    static const struct directory_rule runtime = { "/run", "XDG_RUNTIME_DIR", NULL };
    int result = check_adapter_name(section, router->adapter);

    if (result == 0)
        result = check_command(section, &router->command);
    if (result == 0)
        result = fill_listen(section, &router->listen);
    if (result == 0)
        result = check_addresses(section, "listen", &router->listen, false);
    if (result == 0)
        result = check_adapter_listen(section, router);
    if (result == 0)
        result = check_docs_base(section, router->docs_base);
    if (result == 0)
        result = fill_directory(section, "runtime_dir", &runtime, &router->runtime_dir);
    return result;
}

static bool is_preset(const char *name)
{
    static const char *const presets[] = {
#define PRESET(preset, source) preset,
#include "presets.def"
    };

    for (size_t i = 0; i < ARRAY_SIZE(presets); i++) {
        if (strcmp(presets[i], name) == 0)
            return true;
    }
    return false;
}

static int check_images(const struct setting_section *section,
                        const struct adapter_settings *adapter)
{
    const struct setting_map *custom = &adapter->custom_images;
    const struct setting_map *sources = &adapter->preset_sources;

    for (size_t i = 0; i < custom->count; i++) {
        if (!custom->items[i].key[0])
            return fail_key(section, "custom_images", "expected names, got an empty one");
        if (is_preset(custom->items[i].key))
            return fail_pair(section, "custom_images", custom->items[i].key,
                             "is a preset: give its source in preset_sources");
    }
    for (size_t i = 0; i < sources->count; i++) {
        if (!is_preset(sources->items[i].key))
            return fail_pair(section, "preset_sources", sources->items[i].key,
                             "is no preset: use custom_images for it");
    }
    return 0;
}

static int check_output(const struct setting_section *section, const struct settings *settings)
{
    uint32_t message_bytes = settings->router.max_message_bytes;
    uint32_t max = (message_bytes - OUTPUT_REPLY_OVERHEAD_BYTES) / OUTPUT_REPLY_FACTOR;

    if (settings->adapter.max_output_bytes <= max)
        return 0;
    return fail_key(section, "max_output_bytes",
                    "expected at most %" PRIu32 ", so that a reply fits into max_message_bytes "
                    "%" PRIu32 ", got %" PRIu32,
                    max, message_bytes, settings->adapter.max_output_bytes);
}

static int check_roots(const struct setting_section *section, const struct text_list *roots)
{
    for (size_t i = 0; i < roots->count; i++) {
        struct stat status;

        if (stat(roots->items[i], &status) < 0)
            return fail_key(section, "allowed_roots", "%.100s: %s", roots->items[i],
                            strerror(errno));
        if (!S_ISDIR(status.st_mode))
            return fail_key(section, "allowed_roots", "%.100s is no directory",
                            roots->items[i]);
    }
    return 0;
}

int settings_check_adapter(const struct setting_section *section, struct settings *settings)
{
    static const struct directory_rule cache = { "/var/cache", "XDG_CACHE_HOME", ".cache" };
    static const struct directory_rule state = { "/var/lib", "XDG_STATE_HOME", ".local/state" };
    struct adapter_settings *adapter = &settings->adapter;
    int result = check_images(section, adapter);

    if (result == 0)
        result = check_addresses(section, "insecure_registries", &adapter->insecure_registries,
                                 true);
    if (result == 0)
        result = check_output(section, settings);
    if (result == 0)
        result = check_roots(section, &adapter->allowed_roots);
    if (result == 0)
        result = fill_directory(section, "cache_dir", &cache, &adapter->cache_dir);
    if (result == 0)
        result = fill_directory(section, "state_dir", &state, &adapter->state_dir);
    return result;
}
