/* settings.h - the one settings file, read whole or not at all (contract 11). */
#pragma once

#include "tables.h"
#include "yaml.h"

struct setting_numbers {
    size_t count;
    uint32_t *items;
};

struct setting_map {
    size_t count;
    struct setting_pair {
        char *key;
        char *value;
    } * items;
};

struct setting_caps {
    size_t count;
    struct setting_cap {
        char *name;
        uint32_t max_cpus;      /* 0 when left out: everything exceeds it */
        uint32_t max_memory_mb; /* the same */
    } * items;
};

struct setting_tls {
    char *cert;
    char *key;
    char *ca;
};

#define SETTING_CTYPE_BOOL bool
#define SETTING_CTYPE_U32 uint32_t
#define SETTING_CTYPE_U64 uint64_t
#define SETTING_CTYPE_U32S struct setting_numbers
#define SETTING_CTYPE_TEXT char *
#define SETTING_CTYPE_PATH char *
#define SETTING_CTYPE_TEXTS struct text_list
#define SETTING_CTYPE_PATHS struct text_list
#define SETTING_CTYPE_MAP struct setting_map
#define SETTING_CTYPE_CAPS struct setting_caps
#define SETTING_CTYPE_TLS struct setting_tls

struct router_settings {
#define ROUTER_SETTING(kind, name, ...) SETTING_CTYPE_##kind name;
#include "settings.def"
};

struct adapter_settings {
#define ADAPTER_SETTING(kind, name, ...) SETTING_CTYPE_##kind name;
#include "settings.def"
};

struct settings {
    char *path;
    struct router_settings router;   /* adapter: sandbox-qemu when only the block is there */
    struct adapter_settings adapter; /* defaults when there is no block */
    /* `sandbox.qemu` and `sandbox.mock`, read by those adapters alone; owned by `document`.
     * NULL: not there. */
    const struct yaml_node *qemu;
    const struct yaml_node *mock;
    struct yaml_node *document;
};

#define SETTINGS_ERROR_MAX 512
#define SETTING_NUMBERS_MAX 256u /* in a list of U32S */

/* Reads and checks PATH. 0, or -errno and a text `FILE:LINE: KEY: why` (`FILE: why` where there
 * is no line). Fills defaults, runtime_dir, cache_dir and state_dir included; makes no
 * directories. */
int settings_load(const char *path, struct settings **ret_settings,
                  char ret_error[SETTINGS_ERROR_MAX]);
/* The same while older settings hold. A file that says nothing, no key at all, is -ENODATA
 * here: who saves a file may empty it first and fill it later. */
int settings_reload(const char *path, struct settings **ret_settings,
                    char ret_error[SETTINGS_ERROR_MAX]);
void settings_free(struct settings *settings);
DEFINE_CLEANUP(struct settings *, settings_free)

/* Reads an adapter's own section against its rows; for sandbox.qemu and sandbox.mock. The
 * values land at their offsets in RET, which is overwritten, defaults where MAP (NULL: empty)
 * is silent. -EINVAL and a text `LINE: PREFIX.KEY: why`, or -ENOMEM; RET is released then. A
 * row without a value of its own is left as it is in `standard`: "" is absent or empty. */
struct setting_row {
    const char *name;
    enum setting_kind {
        SETTING_BOOL,
        SETTING_U32,
        SETTING_U64,
        SETTING_U32S, /* min and max: of each */
        SETTING_TEXT,
        SETTING_PATH,
        SETTING_TEXTS,
        SETTING_PATHS,
        SETTING_MAP,
        SETTING_CAPS,
        SETTING_TLS,
        SETTING_SECTION, /* const struct yaml_node *: a map with rows of its own, borrowed */
        SETTING_KIND_MAX
    } kind;
    const char *standard;
    uint64_t min;
    uint64_t max;
    size_t offset;
    const char *text;
};
int settings_read(const struct yaml_node *map, const char *prefix,
                  const struct setting_row *rows, size_t row_count, void *ret,
                  char ret_error[SETTINGS_ERROR_MAX]);
void settings_release(const struct setting_row *rows, size_t row_count, void *values);

extern const struct setting_row router_setting_rows[];
extern const size_t router_setting_count;
extern const struct setting_row adapter_setting_rows[];
extern const size_t adapter_setting_count;
