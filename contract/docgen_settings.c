/* docgen_settings.c - docs/settings.md. */
#include <inttypes.h>

#include "docgen.h"
#include "settings.h"

static const char *const kind_names[] = {
    [SETTING_BOOL] = "bool",
    [SETTING_U32] = "u32",
    [SETTING_U64] = "u64",
    [SETTING_U32S] = "list of u32",
    [SETTING_TEXT] = "text",
    [SETTING_PATH] = "absolute path",
    [SETTING_TEXTS] = "list of text",
    [SETTING_PATHS] = "list of existing directories",
    [SETTING_MAP] = "map of text",
    [SETTING_CAPS] = "map of name to `{max_cpus, max_memory_mb}`",
    [SETTING_TLS] = "map `{cert, key, ca}` of paths",
    [SETTING_SECTION] = "map",
};
_Static_assert(ARRAY_SIZE(kind_names) == SETTING_KIND_MAX, "a name for each kind");

const char *docgen_kind_name(int kind)
{
    return kind_names[kind];
}

static void put_range(struct docgen *doc, const struct setting_row *row)
{
    uint64_t kind_max = row->kind != SETTING_U64 ? UINT32_MAX : UINT64_MAX;

    if (row->kind != SETTING_U32 && row->kind != SETTING_U64 && row->kind != SETTING_U32S) {
        if (row->max > 0)
            docgen_put(doc, "at most %" PRIu64 " bytes", row->max);
        return;
    }
    if (row->max < kind_max)
        docgen_put(doc, "%" PRIu64 " to %" PRIu64, row->min, row->max);
    else if (row->min > 0)
        docgen_put(doc, "at least %" PRIu64, row->min);
}

static void put_rows(struct docgen *doc, const char *prefix, const struct setting_row *rows,
                     size_t row_count)
{
    docgen_put(doc, "| key | type | default | range | |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < row_count; i++) {
        docgen_put(doc, "| `%s%s` | %s | ", prefix, rows[i].name, kind_names[rows[i].kind]);
        if (rows[i].standard[0])
            docgen_put(doc, "`%s`", rows[i].standard);
        docgen_put(doc, " | ");
        put_range(doc, &rows[i]);
        docgen_put(doc, " | ");
        docgen_cell(doc, rows[i].text, "setting", rows[i].name);
        docgen_put(doc, " |\n");
    }
    docgen_put(doc, "\n");
}

static void put_presets(struct docgen *doc)
{
    static const struct {
        const char *name;
        const char *source;
    } presets[] = {
#define PRESET(preset, preset_source) { preset, preset_source },
#include "presets.def"
    };

    docgen_put(doc, "| preset | source |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
        docgen_put(doc, "| `%s` | `%s` |\n", presets[i].name, presets[i].source);
}

void docgen_settings(struct docgen *doc)
{
    docgen_put(
        doc,
        "# Settings\n\n"
        "<!-- Made by sandbox-docgen from contract/settings.def; change that. -->\n\n"
        "One YAML file for all processes, given by `--config`. The keys stand at the top "
        "level or inside a top-level map\n`engine`, not in both. Keys of others in the file "
        "are ignored; a wrong type, a value out of range or an unknown\nkey below `sandbox` "
        "or `workers.iii-sandbox` refuses the whole file, with its line. SIGHUP, or a change "
        "of the file,\nreads it again; a bad new file, or one that holds nothing (yet), is "
        "logged and changes "
        "nothing. `null` "
        "counts as absent.\n\n");
    docgen_put(doc, "## Router\n");
    put_rows(doc, "sandbox.", router_setting_rows, router_setting_count);
    docgen_put(doc, "`sandbox.qemu` and `sandbox.mock` are maps that these adapters read "
                    "themselves.\n\n"
                    "## Adapter\n"
                    "Below `workers.iii-sandbox` or `sandbox.settings`, not in both. With "
                    "`workers.iii-sandbox` alone, even empty,\n`sandbox.adapter` is "
                    "`sandbox-qemu`.\n\n");
    put_rows(doc, "", adapter_setting_rows, adapter_setting_count);
    docgen_put(doc,
               "An inner key of `per_image_caps` that is left out counts as 0: everything "
               "exceeds it. `custom_images` may not name a\npreset, `preset_sources` names "
               "presets only. An image can be booted when it is a preset or a custom image "
               "and stands in\n`image_allowlist`.\n\n");
    put_presets(doc);
}
