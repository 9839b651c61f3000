/* image_collect.h - which images leave the cache when they take too much room (setting
 * max_cache_mb). */
#pragma once

#include "image_cache.h"
#include "settings.h"

struct image_removed {
    struct text_list digests;
    struct text_list paths; /* what is left to be deleted */
    uint64_t freed_bytes;
};
void image_removed_done(struct image_removed *removed);

/* Takes images out of the cache until the rest takes LIMIT_BYTES at most: first those that no
 * setting names, then, when they would be installed again at their next use, the others; of
 * each the one that was used longest ago. Never one that is in use or KEEP (NULL: none). Adds
 * them to REMOVED; 0 or -errno. */
int image_collect(struct image_cache *cache, const struct adapter_settings *settings,
                  uint64_t limit_bytes, const char *keep, struct image_removed *removed);
/* The same by the setting, after KEEP was installed, and deletes them in the background. */
void image_collect_by_setting(struct image_cache *cache,
                              const struct adapter_settings *settings, const char *keep);
