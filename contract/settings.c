/* settings.c - the settings file as a whole (contract 11): where its parts stand and with which
 * rows they are read. settings_read.c reads one map, settings_check.c knows what values mean.
 */
#include "settings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "settings_parts.h"

#define ADAPTER_STANDARD "sandbox-qemu" /* when only its settings are there */
#define WORKER_KEY "iii-sandbox"

const struct setting_row router_setting_rows[] = {
#define ROUTER_SETTING(row_kind, member, row_standard, row_min, row_max, row_text)             \
    { .name = #member,                                                                         \
      .kind = SETTING_##row_kind,                                                              \
      .standard = row_standard,                                                                \
      .min = row_min,                                                                          \
      .max = row_max,                                                                          \
      .offset = offsetof(struct router_settings, member),                                      \
      .text = row_text },
#include "settings.def"
};
const size_t router_setting_count = ARRAY_SIZE(router_setting_rows);

const struct setting_row adapter_setting_rows[] = {
#define ADAPTER_SETTING(row_kind, member, row_standard, row_min, row_max, row_text)            \
    { .name = #member,                                                                         \
      .kind = SETTING_##row_kind,                                                              \
      .standard = row_standard,                                                                \
      .min = row_min,                                                                          \
      .max = row_max,                                                                          \
      .offset = offsetof(struct adapter_settings, member),                                     \
      .text = row_text },
#include "settings.def"
};
const size_t adapter_setting_count = ARRAY_SIZE(adapter_setting_rows);

/* The parts of the file that are ours. NULL: not there. */
struct sections {
    const char *prefix; /* "engine" or "" */
    const struct yaml_node *sandbox;
    const struct yaml_node *worker; /* workers.iii-sandbox */
};

static bool sections_found(const struct sections *sections)
{
    return sections->sandbox || sections->worker;
}

static struct sections sections_find(const struct yaml_node *map, const char *prefix)
{
    return (struct sections){
        .prefix = prefix,
        .sandbox = yaml_get(map, "sandbox"),
        .worker = yaml_get(yaml_get(map, "workers"), WORKER_KEY),
    };
}

/* The keys stand inside `engine` or at the top, never in both. */
static int sections_choose(const struct yaml_node *root, char *error,
                           struct sections *ret_found)
{
    struct setting_place top = { .key = "", .error = error };
    struct sections outer = sections_find(root, "");
    struct sections inner = sections_find(yaml_get(root, "engine"), "engine");

    if (root->kind != YAML_MAP && root->kind != YAML_NULL)
        return settings_fail_type(&top, root, "a map");
    if (sections_found(&outer) && sections_found(&inner)) {
        const char *key = outer.sandbox ? "sandbox" : "workers." WORKER_KEY;
        struct setting_place place = setting_place_inner(&top, key);

        return settings_fail(
            &place, (outer.sandbox ? outer.sandbox : outer.worker)->line,
            "stands at the top while engine holds settings too: keep one place");
    }
    *ret_found = sections_found(&inner) ? inner : outer;
    return 0;
}

/* The map `sandbox`: the router's settings, and sections that are read by others. */
struct sandbox_section {
    struct router_settings router;
    const struct yaml_node *settings;
    const struct yaml_node *qemu;
    const struct yaml_node *mock;
};

#define SECTION(member)                                                                        \
    {                                                                                          \
        .name = #member, .kind = SETTING_SECTION, .standard = "",                              \
        .offset = offsetof(struct sandbox_section, member)                                     \
    }
static const struct setting_row sandbox_rows[] = {
#define ROUTER_SETTING(row_kind, member, row_standard, row_min, row_max, ...)                  \
    { .name = #member,                                                                         \
      .kind = SETTING_##row_kind,                                                              \
      .standard = row_standard,                                                                \
      .min = row_min,                                                                          \
      .max = row_max,                                                                          \
      .offset = offsetof(struct sandbox_section, router.member) },
#include "settings.def"
    SECTION(settings),
    SECTION(qemu),
    SECTION(mock),
};

static bool is_adapter_key(const char *key)
{
    for (size_t i = 0; i < adapter_setting_count; i++) {
        if (strcmp(adapter_setting_rows[i].name, key) == 0)
            return true;
    }
    return false;
}

/* A likely slip gets a better answer than `unknown key`. */
static int check_misplaced(const struct setting_place *place, const struct yaml_node *sandbox)
{
    for (size_t i = 0; sandbox && sandbox->kind == YAML_MAP && i < sandbox->count; i++) {
        struct setting_place inner = setting_place_inner(place, sandbox->keys[i]->text);

        if (is_adapter_key(inner.key))
            return settings_fail(&inner, sandbox->keys[i]->line,
                                 "is a setting of the adapter: move it to sandbox.settings");
    }
    return 0;
}

static int read_sandbox(struct setting_section *section, struct settings *settings)
{
    struct sandbox_section values = { 0 };
    int result = check_misplaced(&section->place, section->map);

    if (result < 0)
        return result;
    result = settings_read_rows(&section->place, section->map, sandbox_rows,
                                ARRAY_SIZE(sandbox_rows), &values);
    settings->router = values.router; /* half-filled on failure; released with the whole */
    settings->qemu = values.qemu;
    settings->mock = values.mock;
    return result;
}

/* Where the adapter's settings stand. */
static int adapter_section(const struct setting_place *top, const struct sections *sections,
                           struct setting_section *ret_section)
{
    const struct yaml_node *own = yaml_get(sections->sandbox, "settings");

    *ret_section = (struct setting_section){
        .place = setting_place_inner(top, own ? "sandbox.settings" : "workers." WORKER_KEY),
        .map = own ? own : sections->worker,
    };
    if (own && sections->worker)
        return settings_fail(&ret_section->place, own->line,
                             "workers." WORKER_KEY " is there too: keep one of them");
    return 0;
}

static int fill_adapter_name(const struct sections *sections, struct router_settings *router)
{
    if (router->adapter || !sections->worker)
        return 0;
    router->adapter = strdup(ADAPTER_STANDARD);
    return router->adapter ? 0 : -ENOMEM;
}

/* ERROR gets `LINE: KEY: why`, or "" where nothing but the result is known. */
static int read_document(struct settings *settings, char *error)
{
    struct setting_place top = { .key = "", .error = error };
    struct setting_section sandbox, adapter;
    struct sections sections = { 0 };
    int result = sections_choose(settings->document, error, &sections);

    if (result < 0)
        return result;
    top.key = sections.prefix;
    sandbox.place = setting_place_inner(&top, "sandbox");
    sandbox.map = sections.sandbox;
    result = read_sandbox(&sandbox, settings);
    if (result == 0)
        result = adapter_section(&top, &sections, &adapter);
    if (result == 0)
        result = settings_read_rows(&adapter.place, adapter.map, adapter_setting_rows,
                                    adapter_setting_count, &settings->adapter);
    if (result == 0)
        result = fill_adapter_name(&sections, &settings->router);
    if (result == 0)
        result = settings_check_router(&sandbox, &settings->router);
    if (result == 0)
        result = settings_check_adapter(&adapter, settings);
    return result;
}

static void show_error(char *ret_error, const char *format, ...) _printf_(2, 3);

static void show_error(char *ret_error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(ret_error, SETTINGS_ERROR_MAX, format, arguments); /* cut if it must be */
    va_end(arguments);
}

/* The reader of YAML says `line N: why`; here the line stands behind the file's name. */
static void show_yaml_error(const char *path, const char *why, char *ret_error)
{
    unsigned line;
    int skipped = 0;

    if (sscanf(why, "line %u: %n", &line, &skipped) == 1 && skipped > 0)
        show_error(ret_error, "%s:%u: %s", path, line, why + skipped);
    else
        show_error(ret_error, "%s: %s", path, why);
}

static int load_document(const char *path, struct settings *settings, char *ret_error)
{
    char why[SETTINGS_ERROR_MAX] = "out of memory";
    int result = -ENOMEM;

    settings->path = strdup(path);
    if (settings->path)
        result = yaml_load(path, &settings->document, why, sizeof(why));
    if (result < 0)
        show_yaml_error(path, why, ret_error);
    return result;
}

int settings_load(const char *path, struct settings **ret_settings,
                  char ret_error[SETTINGS_ERROR_MAX])
{
    _cleanup_(settings_freep)
    struct settings *settings = calloc(1, sizeof(*settings));
    char why[SETTINGS_ERROR_MAX] = "";
    int result;

    if (!settings) {
        show_error(ret_error, "%s: out of memory", path);
        return -ENOMEM;
    }
    result = load_document(path, settings, ret_error);
    if (result < 0)
        return result;
    result = read_document(settings, why);
    if (result < 0) {
        show_error(ret_error, why[0] ? "%s:%s" : "%s: out of memory%s", path, why);
        return result;
    }
    *ret_settings = take_ptr(settings);
    return 0;
}

int settings_reload(const char *path, struct settings **ret_settings,
                    char ret_error[SETTINGS_ERROR_MAX])
{
    _cleanup_(settings_freep)
    struct settings *settings = NULL;
    int result = settings_load(path, &settings, ret_error);

    if (result == 0 && settings->document->kind == YAML_NULL) {
        show_error(ret_error,
                   "%s: holds no settings; an empty map, {}, would mean the defaults", path);
        return -ENODATA;
    }
    if (result == 0)
        *ret_settings = take_ptr(settings);
    return result;
}

void settings_free(struct settings *settings)
{
    if (!settings)
        return;
    settings_release(router_setting_rows, router_setting_count, &settings->router);
    settings_release(adapter_setting_rows, adapter_setting_count, &settings->adapter);
    yaml_free(settings->document);
    free(settings->path);
    free(settings);
}
