/* image_collect.c - see image_collect.h. */
#include "image_collect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "catalog.h"
#include "codec.h"
#include "image_disk.h"
#include "log.h"

#define MIB (1024u * 1024u)

struct candidate {
    const struct disk_image *image;
    bool named; /* by the settings */
};

static bool is_named(struct image_cache *cache, const struct adapter_settings *settings,
                     const char *digest)
{
    char named[HASH_SHA256_HEX_BYTES];
    const char *name;
    bool is_preset;

    for (size_t i = 0; (name = catalog_name(settings, i, &is_preset)); i++) {
        image_cache_digest(cache, settings, name, named);
        if (strcmp(named, digest) == 0)
            return true;
    }
    return false;
}

static int compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    if (a->named != b->named)
        return a->named ? 1 : -1;
    return a->image->used_at < b->image->used_at ? -1 : a->image->used_at > b->image->used_at;
}

static int retire(const char *directory, const struct disk_image *image,
                  struct image_removed *removed)
{
    _cleanup_free_ char *path = NULL;
    int ret = disk_image_retire(directory, image->image.digest, &path);

    if (ret == -EBUSY || ret == -EAGAIN || ret == -ENOENT)
        return 0; /* somebody was quicker */
    if (ret < 0)
        return ret;
    log_event(LOG_INFO, "image_removed", log_text("image", image->image.name),
              log_text("digest", image->image.digest), log_uint("bytes", image->size_bytes));
    removed->freed_bytes += image->size_bytes;
    ret = text_list_append(&removed->digests, image->image.digest);
    return ret == 0 ? text_list_append(&removed->paths, path) : ret;
}

static int collect(struct image_cache *cache, const struct adapter_settings *settings,
                   const char *directory, uint64_t limit_bytes, const char *keep,
                   struct image_removed *removed)
{
    struct disk_images images = { 0 };
    _cleanup_free_ struct candidate *candidates = NULL;
    uint64_t left_bytes;
    size_t count = 0;
    int ret = disk_images_read(directory, &images);

    left_bytes = images.total_bytes;
    if (ret == 0 && left_bytes > limit_bytes) {
        candidates = calloc(images.count, sizeof(*candidates));
        ret = candidates ? 0 : -ENOMEM;
    }
    for (size_t i = 0; candidates && i < images.count; i++) {
        const struct disk_image *image = &images.items[i];
        bool named = is_named(cache, settings, image->image.digest);

        if (!image->in_use && !(keep && strcmp(keep, image->image.digest) == 0) &&
            !(named && !settings->auto_install))
            candidates[count++] = (struct candidate){ image, named };
    }
    if (count > 0)
        qsort(candidates, count, sizeof(*candidates), compare);
    for (size_t i = 0; ret == 0 && i < count && left_bytes > limit_bytes; i++) {
        uint64_t freed_before = removed->freed_bytes;

        ret = retire(directory, candidates[i].image, removed);
        left_bytes -= removed->freed_bytes - freed_before;
    }
    disk_images_done(&images);
    return ret;
}

int image_collect(struct image_cache *cache, const struct adapter_settings *settings,
                  uint64_t limit_bytes, const char *keep, struct image_removed *removed)
{
    _cleanup_free_ char *directory = image_cache_directory(settings);

    return directory ? collect(cache, settings, directory, limit_bytes, keep, removed)
                     : -ENOMEM;
}

void image_collect_by_setting(struct image_cache *cache,
                              const struct adapter_settings *settings, const char *keep)
{
    struct image_removed removed = { 0 };
    int ret = 0;

    if (settings->max_cache_mb == 0)
        return;
    ret = image_collect(cache, settings, (uint64_t)settings->max_cache_mb * MIB, keep,
                        &removed);
    if (ret == 0)
        ret = image_cache_delete(cache, &removed.paths, NULL, NULL);
    if (ret < 0)
        log_event(LOG_WARN, "images_not_collected", log_text("error", strerror(-ret)));
    image_removed_done(&removed);
}

void image_removed_done(struct image_removed *removed)
{
    text_list_done(&removed->digests);
    text_list_done(&removed->paths);
}
