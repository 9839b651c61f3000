/* catalog.c - see catalog.h. */
#include "catalog.h"

#include <string.h>

#include "buf.h"

static const struct preset {
    const char *name;
    const char *source;
} presets[] = {
#define PRESET(preset_name, preset_source) { preset_name, preset_source },
#include "presets.def"
};

/* Contract 7.2: "npm added lean". */
static const struct {
    const char *preset, *addition;
} additions[] = { { "node", "npm" } };

static const char *map_get(const struct setting_map *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->items[i].key, key) == 0)
            return map->items[i].value;
    return NULL;
}

static const struct preset *preset_find(const char *image)
{
    for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
        if (strcmp(presets[i].name, image) == 0)
            return &presets[i];
    return NULL;
}

const char *catalog_source(const struct adapter_settings *settings, const char *image)
{
    const struct preset *preset = preset_find(image);
    const char *source;

    if (!preset)
        return map_get(&settings->custom_images, image);
    source = map_get(&settings->preset_sources, image);
    return source ? source : preset->source;
}

const char *catalog_addition(const struct adapter_settings *settings, const char *image)
{
    if (map_get(&settings->preset_sources, image))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(additions); i++)
        if (strcmp(additions[i].preset, image) == 0)
            return additions[i].addition;
    return NULL;
}

const char *catalog_name(const struct adapter_settings *settings, size_t index,
                         bool *ret_is_preset)
{
    *ret_is_preset = index < ARRAY_SIZE(presets);
    if (*ret_is_preset)
        return presets[index].name;
    index -= ARRAY_SIZE(presets);
    return index < settings->custom_images.count ? settings->custom_images.items[index].key
                                                 : NULL;
}

size_t catalog_count(const struct adapter_settings *settings)
{
    return ARRAY_SIZE(presets) + settings->custom_images.count;
}

bool catalog_allows(const struct adapter_settings *settings, const char *image)
{
    for (size_t i = 0; i < settings->image_allowlist.count; i++)
        if (strcmp(settings->image_allowlist.items[i], image) == 0)
            return true;
    return false;
}

/* Appends the names that may be booted, in the order of the allowlist. */
static int list_bootable(const struct adapter_settings *settings, struct buf *to)
{
    int ret = 0;

    for (size_t i = 0; ret == 0 && i < settings->image_allowlist.count; i++) {
        const char *name = settings->image_allowlist.items[i];

        if (catalog_source(settings, name))
            ret = buf_printf(to, "%s%s", to->size > 0 ? ", " : "", name);
    }
    return ret;
}

int catalog_refuse(const struct adapter_settings *settings, const char *image,
                   const char *problem, struct sandbox_error *err)
{
    _cleanup_(buf_done)
    struct buf bootable = { 0 };
    const char *names = NULL;

    if (list_bootable(settings, &bootable) == 0 && bootable.size > 0)
        names = buf_text(&bootable);
    return sandbox_error_set(err, S100, "image %s %s; %s%s", image, problem,
                             names ? "images that may be booted: " : "no image may be booted",
                             names ? names : "");
}

int catalog_check(const struct adapter_settings *settings, const char *image,
                  const char **ret_source, struct sandbox_error *err)
{
    const char *source = catalog_source(settings, image);

    if (!source)
        return catalog_refuse(settings, image, "is not in the catalog", err);
    if (!catalog_allows(settings, image))
        return catalog_refuse(settings, image, "is not in image_allowlist", err);
    *ret_source = source;
    return 0;
}
