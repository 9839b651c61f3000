/* image_cache.h - installed images on disk, and the installs that bring them there (contract
 * 7.3).
 *
 * Owns <cache_dir>/images: one folder a digest, complete or not there. The work of an install
 * is the back end's installer program (docs/images.md). */
#pragma once

#include "error.h"
#include "hash.h"
#include "image.h"
#include "image_held.h"
#include "loop.h"
#include "settings.h"

struct image_cache;
struct image_jobs; /* image_install.h */
struct image_wait;

struct image_wait_events {
    void (*progress)(void *ctx, const struct image_progress *progress);
    /* Once, never from inside image_cache_get(): exactly one of IMAGE (one reference, the
     * receiver's) and ERR (S101, S102) is not NULL. INSTALLED: it was not there before. The
     * wait is over; free it. */
    void (*done)(void *ctx, const struct image *own_image, bool installed,
                 struct sandbox_error *err);
};

/* Texts and CTX are borrowed for the life of the cache; its free reads none of them. */
struct image_cache_options {
    struct loop *loop;
    const char *installer; /* the program that installs an image (docs/images.md) */
    const char *flavor;    /* of the back end; belongs into the digests */
    /* One was installed; whoever waited for it has been told. */
    void (*installed)(void *ctx, const char *digest);
    void *ctx;
};

/* What a killed process left in the folder of SETTINGS, borrowed for the call, is removed in
 * the background. 0 or -errno. */
int image_cache_new(const struct image_cache_options *options,
                    const struct adapter_settings *settings, struct image_cache **ret_cache);
/* No wait is left by then; a running installer is killed. */
void image_cache_free(struct image_cache *cache);
DEFINE_CLEANUP(struct image_cache *, image_cache_free)

/* Check 6 of contract 5.1.2 for an image of the catalog. SETTINGS, borrowed for the call, give
 * source and limits; FLAGS are of enum image_flags. EVENTS is borrowed for the wait's life. 0
 * or -ENOMEM. */
int image_cache_get(struct image_cache *cache, const struct adapter_settings *settings,
                    const char *image, unsigned flags, const struct image_wait_events *events,
                    void *ctx, struct image_wait **ret_wait);
/* The name of the folder in the cache that IMAGE, of the catalog, has or would have. */
void image_cache_digest(struct image_cache *cache, const struct adapter_settings *settings,
                        const char *image, char ret_digest[HASH_SHA256_HEX_BYTES]);
/* <cache_dir>/images of these settings. The caller frees; NULL without memory. */
char *image_cache_directory(const struct adapter_settings *settings);
/* It is being checked or installed here. */
bool image_cache_installs(const struct image_cache *cache,
                          const struct adapter_settings *settings, const char *digest);
/* Deletes what has left the cache, in the background. DONE (may be NULL) once, never from
 * inside the call. 0 or -errno. */
int image_cache_delete(struct image_cache *cache, const struct text_list *paths,
                       void (*done)(void *ctx), void *ctx);
struct image_jobs *image_cache_jobs(struct image_cache *cache);

/* Also leaves a wait that is not over: no callback follows, and an install that nobody waits
 * for any more is killed. */
void image_wait_free(struct image_wait *wait);
DEFINE_CLEANUP(struct image_wait *, image_wait_free)
