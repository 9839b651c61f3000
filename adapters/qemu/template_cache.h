/* template_cache.h - templates on disk, in <cache_dir>/templates: looked up and kept on
 * threads, so that neither blocks the loop.
 *
 * Nothing here is needed: without a folder, or with a limit of 0, nothing is found and nothing
 * is kept. What cannot be trusted is removed and logged; the caller boots then. */
#pragma once

#include "loop.h"
#include "template_file.h"
#include "template_key.h"

struct template_cache;
struct template_lookup;

/* FOLDER is made if need be. 0 or -errno. */
int template_cache_new(struct loop *loop, const char *cache_directory,
                       struct template_cache **ret_cache);
/* Ends what is under way; the lookups were cancelled. */
void template_cache_free(struct template_cache *cache);

/* Once, never from inside template_cache_find(). KEY is "" when it cannot be told: nothing can
 * be kept then. PARTS are the caller's to take; NULL: there is none. */
typedef void (*template_found_fn)(void *ctx, const char *key, struct template_parts *parts);

/* NAME is for the log. All of SPEC is copied. 0 or -errno. */
int template_cache_find(struct template_cache *cache, const char *name,
                        const struct template_key_spec *spec, const char *scratch,
                        template_found_fn fn, void *ctx, struct template_lookup **ret_lookup);
/* FN is not called any more. NULL is fine. */
void template_lookup_cancel(struct template_lookup *lookup);

/* Keeps PARTS (borrowed for the call, and sealed: nobody changes them) in the background, and
 * removes those that were not used for longest until all take at most MAX_MB. */
void template_cache_keep(struct template_cache *cache, const char *name, const char *key,
                         const struct template_parts *parts, uint32_t max_mb);
