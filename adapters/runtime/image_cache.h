/* image_cache.h - installed images on disk, and the installs that bring them there (contract
 * 7.3).
 *
 * Owns <cache_dir>/images: one folder a digest, complete or not there. The work of an install
 * is the back end's installer program (docs/images.md). */
#pragma once

#include "adapter.h"
#include "backend.h"
#include "error.h"

struct image_cache;
struct image_wait;

enum image_stage { IMAGE_PULLING, IMAGE_UNPACKING, IMAGE_STAGE_MAX };

struct image_wait_events {
    /* Only on a real install. TOTAL_BYTES is 0 when unknown. */
    void (*progress)(void *ctx, enum image_stage stage, uint64_t bytes, uint64_t total_bytes);
    /* Once, never from inside image_cache_get(): exactly one of IMAGE (one reference, the
     * receiver's) and ERR (S101, S102) is not NULL. The wait is over; free it. */
    void (*done)(void *ctx, const struct image *own_image, struct sandbox_error *err);
};

int image_cache_new(struct adapter *adapter, struct image_cache **ret_cache);
/* No wait is left by then; a running installer is killed. */
void image_cache_free(struct image_cache *cache);
DEFINE_CLEANUP(struct image_cache *, image_cache_free)

/* Check 6 of contract 5.1.2 for an image that catalog_check() let pass. SNAPSHOT gives source
 * and limits. EVENTS is borrowed for the wait's life. 0 or -ENOMEM. */
int image_cache_get(struct image_cache *cache, struct snapshot *snapshot, const char *image,
                    const struct image_wait_events *events, void *ctx,
                    struct image_wait **ret_wait);
/* Also leaves a wait that is not over: no callback follows, and an install that nobody waits
 * for any more is killed. */
void image_wait_free(struct image_wait *wait);
DEFINE_CLEANUP(struct image_wait *, image_wait_free)

/* An image lives as long as somebody holds it; machines borrow it from their sandbox. */
const struct image *image_ref(const struct image *image);
void image_unref(const struct image *image);
