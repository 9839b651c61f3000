/* image_cache.c - see image_cache.h. */
#include "image_cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "catalog.h"
#include "codec.h"
#include "image_install.h"
#include "image_remove.h"
#include "image_seal.h"
#include "list.h"
#include "log.h"
#include "table.h"

/* Goes up when the same source would be installed in another way. */
#define IMAGE_RECIPE_VERSION 2

/* Where an image belongs, by what is asked for. */
struct place {
    char digest[HASH_SHA256_HEX_BYTES];
    char *images_directory;
    char *directory;
};

struct image_cache {
    struct image_cache_options options;
    char architecture[sizeof(((struct utsname *)0)->machine)];
    struct held_images held;
    struct table *missing; /* struct missing_image by directory */
    struct image_jobs jobs;
};

/* An image that is being checked or installed. */
struct missing_image {
    struct image_cache *cache;
    char *directory;
    char *digest;
    struct image_install *install;
    struct list waits;
};

struct image_wait {
    struct list node; /* in missing->waits */
    struct image_cache *cache;
    struct missing_image *missing; /* NULL: the answer is known, or told */
    const struct image_wait_events *events;
    void *ctx;
    char *image;
    char *source;

    struct loop_notice answer; /* deferred, when it was known at once */
    const struct image *found;
    struct sandbox_error *err;
};

/* Places. */

static void place_done(struct place *place)
{
    free(place->images_directory);
    free(place->directory);
}

static void hash_text(struct hash_sha256 *hash, const char *text)
{
    hash_sha256_update(hash, text, strlen(text) + 1); /* the NUL keeps the texts apart */
}

void image_cache_digest(struct image_cache *cache, const struct adapter_settings *settings,
                        const char *image, char ret_digest[HASH_SHA256_HEX_BYTES])
{
    const char *addition = catalog_addition(settings, image);
    struct hash_sha256 hash;
    char recipe[16];

    (void)snprintf(recipe, sizeof(recipe), "%d", IMAGE_RECIPE_VERSION);
    hash_sha256_init(&hash);
    hash_text(&hash, catalog_source(settings, image));
    hash_text(&hash, addition ? addition : "");
    hash_text(&hash, recipe);
    hash_text(&hash, cache->options.flavor);
    hash_text(&hash, cache->architecture);
    hash_sha256_final_hex(&hash, ret_digest);
}

char *image_cache_directory(const struct adapter_settings *settings)
{
    char *directory;

    return asprintf(&directory, "%s/images", settings->cache_dir) < 0 ? NULL : directory;
}

static int cache_place(struct image_cache *cache, const struct adapter_settings *settings,
                       const char *image, struct place *ret_place)
{
    struct place place = { .images_directory = image_cache_directory(settings) };

    image_cache_digest(cache, settings, image, place.digest);
    if (asprintf(&place.directory, "%s/images/%s", settings->cache_dir, place.digest) < 0)
        place.directory = NULL;
    if (!place.images_directory || !place.directory) {
        place_done(&place);
        return -ENOMEM;
    }
    *ret_place = place;
    return 0;
}

/* Waits. */

/* Tells it once; the owner may free it meanwhile. */
static void wait_tell(struct image_wait *wait, const struct image *own_image, bool installed,
                      struct sandbox_error *err)
{
    wait->missing = NULL;
    wait->events->done(wait->ctx, own_image, installed, err);
}

static void on_answer(void *ctx)
{
    struct image_wait *wait = ctx;
    struct sandbox_error *err = take_ptr(wait->err);
    const struct image *found = take_ptr(wait->found);

    wait_tell(wait, found, false, err);
    if (err)
        sandbox_error_done(err);
    free(err);
}

static void set_missing(const struct image_wait *wait, const char *directory, const char *cause,
                        struct sandbox_error *err)
{
    if (*cause)
        sandbox_error_set(err, S101, "image %s in %s is damaged (%s), and auto_install is off",
                          wait->image, directory, cause);
    else
        sandbox_error_set(err, S101, "image %s is not in %s, and auto_install is off",
                          wait->image, directory);
}

static void set_failed(const struct image_wait *wait, const char *step, const char *cause,
                       struct sandbox_error *err)
{
    sandbox_error_set(err, S102, "image %s (source %s): step %s: %s", wait->image, wait->source,
                      step, cause);
}

/* Answers WAIT before the loop waits again. */
static int wait_refuse(struct image_wait *wait, const struct place *place, unsigned flags,
                       const char *step, const char *cause)
{
    wait->err = calloc(1, sizeof(*wait->err));
    if (!wait->err)
        return -ENOMEM;
    if (flags & IMAGE_MAY_INSTALL)
        set_failed(wait, step, cause, wait->err);
    else
        set_missing(wait, place->directory, "", wait->err);
    loop_defer(wait->cache->options.loop, &wait->answer);
    return 0;
}

static struct image_wait *wait_new(struct image_cache *cache, const char *image,
                                   const char *source, const struct image_wait_events *events,
                                   void *ctx)
{
    struct image_wait *wait = calloc(1, sizeof(*wait));

    if (!wait)
        return NULL;
    list_init(&wait->node);
    wait->cache = cache;
    wait->events = events;
    wait->ctx = ctx;
    wait->image = strdup(image);
    wait->source = strdup(source);
    loop_notice_init(&wait->answer, on_answer, wait);
    if (wait->image && wait->source)
        return wait;
    image_wait_free(wait);
    return NULL;
}

/* Installs. */

/* Out of the table: who asks from now on looks at the disk again. */
static void missing_forget(struct missing_image *missing)
{
    if (missing->directory &&
        table_get_text(missing->cache->missing, missing->directory) == missing)
        (void)table_remove_text(missing->cache->missing, missing->directory); /* itself */
}

static void missing_free(struct missing_image *missing)
{
    missing_forget(missing);
    free(missing->directory);
    free(missing->digest);
    free(missing);
}

void image_wait_free(struct image_wait *wait)
{
    struct missing_image *missing;

    if (!wait)
        return;
    missing = wait->missing;
    list_remove(&wait->node);
    if (missing && list_empty(&missing->waits)) {
        image_install_abandon(missing->install);
        missing_free(missing);
    }
    loop_notice_cancel(wait->cache->options.loop, &wait->answer);
    image_unref(wait->found);
    if (wait->err)
        sandbox_error_done(wait->err);
    free(wait->err);
    free(wait->image);
    free(wait->source);
    free(wait);
}

static void on_progress(void *ctx, const struct image_progress *progress)
{
    struct missing_image *missing = ctx;

    /* Reporting sends events, it frees no waits. */
    LIST_FOREACH(node, &missing->waits)
    {
        struct image_wait *wait = LIST_ENTRY(node, struct image_wait, node);

        wait->events->progress(wait->ctx, progress);
    }
}

static void wait_tell_failure(struct image_wait *wait, const char *directory,
                              const struct image_install_failure *failure)
{
    struct sandbox_error err = { 0 };

    if (failure->missing)
        set_missing(wait, directory, failure->cause, &err);
    else
        set_failed(wait, failure->step, failure->cause, &err);
    wait_tell(wait, NULL, false, &err);
    sandbox_error_done(&err);
}

/* What the install left becomes an image, if it can. */
static const struct image_install_failure *missing_load(const struct missing_image *missing,
                                                        struct image_install_failure *unusable,
                                                        const struct image **ret_image)
{
    int ret = image_hold(&missing->cache->held, missing->directory, missing->digest, ret_image);

    if (ret == 0)
        return NULL;
    *unusable = (struct image_install_failure){ .step = "finish" };
    (void)snprintf(unusable->cause, sizeof(unusable->cause), "%s: %s", missing->directory,
                   strerror(-ret));
    return unusable;
}

static void on_ended(void *ctx, bool installed, const struct image_install_failure *failure)
{
    struct missing_image *missing = ctx;
    struct image_cache *cache = missing->cache;
    _cleanup_free_ char *directory = missing->directory, *digest = missing->digest;
    struct image_install_failure unusable;
    const struct image *image = NULL;
    struct list waits, *node;

    list_init(&waits);
    list_move_all(&waits, &missing->waits);
    if (!failure)
        failure = missing_load(missing, &unusable, &image);
    LIST_FOREACH(waiting, &waits)
    LIST_ENTRY(waiting, struct image_wait, node)->missing = NULL;
    missing_forget(missing);
    missing->directory = missing->digest = NULL; /* ours */
    missing_free(missing);
    while ((node = list_pop(&waits))) {
        struct image_wait *wait = LIST_ENTRY(node, struct image_wait, node);

        if (image)
            wait_tell(wait, image_ref(image), installed, NULL);
        else
            wait_tell_failure(wait, directory, failure);
    }
    image_unref(image);
    if (installed && image)
        cache->options.installed(cache->options.ctx, digest);
}

static const struct image_install_events install_events = {
    .progress = on_progress,
    .ended = on_ended,
};

static int missing_begin(struct image_cache *cache, const struct adapter_settings *settings,
                         const struct image_wait *wait, const struct source *source,
                         const struct place *place, unsigned flags,
                         struct missing_image **ret_missing)
{
    struct missing_image *missing = calloc(1, sizeof(*missing));
    int ret = missing ? 0 : -ENOMEM;

    if (ret == 0) {
        missing->cache = cache;
        list_init(&missing->waits);
        missing->directory = strdup(place->directory);
        missing->digest = strdup(place->digest);
        ret = missing->directory && missing->digest
                  ? table_put_text(cache->missing, missing->directory, missing)
                  : -ENOMEM;
    }
    if (ret == 0 && mkdir(place->images_directory, 0700) < 0 && errno != EEXIST)
        ret = -errno;
    if (ret == 0)
        ret = image_install_begin(
            cache->options.loop,
            &(struct image_install_spec){ .installer = cache->options.installer,
                                          .images_directory = place->images_directory,
                                          .digest = place->digest,
                                          .image = wait->image,
                                          .source_text = wait->source,
                                          .source = source,
                                          .addition = catalog_addition(settings, wait->image),
                                          .architecture = cache->architecture,
                                          .timeout_ms = settings->pull_timeout_ms,
                                          .max_mb = settings->max_cache_mb,
                                          .stall_timeout_ms = settings->pull_stall_timeout_ms,
                                          .flags = flags },
            &cache->jobs, &install_events, missing, &missing->install);
    if (ret < 0) {
        if (missing)
            missing_free(missing);
        return ret;
    }
    *ret_missing = missing;
    return 0;
}

/* WAIT is answered, or waits for an install or a check. */
static int cache_install(struct image_cache *cache, const struct adapter_settings *settings,
                         const struct place *place, unsigned flags, struct image_wait *wait)
{
    struct missing_image *missing = table_get_text(cache->missing, place->directory);
    struct source source = { 0 };
    char why[SOURCE_WHY_MAX];
    int ret;

    if (!missing) {
        ret = source_parse(wait->source, &settings->insecure_registries, &source, why);
        if (ret == -EINVAL)
            return wait_refuse(wait, place, flags, "source", why);
        if (ret == 0)
            ret = missing_begin(cache, settings, wait, &source, place, flags, &missing);
        source_done(&source);
        if (ret < 0)
            return wait_refuse(wait, place, flags, "start", strerror(-ret));
    } else if (flags & IMAGE_MAY_INSTALL) {
        image_install_permit(missing->install);
    }
    wait->missing = missing;
    list_append(&missing->waits, &wait->node);
    return 0;
}

int image_cache_get(struct image_cache *cache, const struct adapter_settings *settings,
                    const char *image, unsigned flags, const struct image_wait_events *events,
                    void *ctx, struct image_wait **ret_wait)
{
    _cleanup_(image_wait_freep)
    struct image_wait *wait = wait_new(cache, image, catalog_source(settings, image), events,
                                       ctx);
    struct place place;
    int ret = wait ? cache_place(cache, settings, image, &place) : -ENOMEM;

    if (ret < 0)
        return ret;
    if (!(flags & (IMAGE_ALWAYS_CHECK | IMAGE_ANEW)) && image_seal_holds(place.directory) &&
        image_hold(&cache->held, place.directory, place.digest, &wait->found) == 0)
        loop_defer(cache->options.loop, &wait->answer);
    else
        ret = cache_install(cache, settings, &place, flags, wait);
    place_done(&place);
    if (ret < 0)
        return ret;
    *ret_wait = take_ptr(wait);
    return 0;
}

/* Looking. */

bool image_cache_installs(const struct image_cache *cache,
                          const struct adapter_settings *settings, const char *digest)
{
    _cleanup_free_ char *directory = NULL;

    if (asprintf(&directory, "%s/images/%s", settings->cache_dir, digest) < 0)
        directory = NULL;
    return directory && table_get_text(cache->missing, directory);
}

int image_cache_delete(struct image_cache *cache, const struct text_list *paths,
                       void (*done)(void *ctx), void *ctx)
{
    return image_remove(cache->options.loop, paths, &cache->jobs.removals, done, ctx);
}

struct image_jobs *image_cache_jobs(struct image_cache *cache)
{
    return &cache->jobs;
}

/* Life. */

int image_cache_new(const struct image_cache_options *options,
                    const struct adapter_settings *settings, struct image_cache **ret_cache)
{
    _cleanup_(image_cache_freep)
    struct image_cache *cache = calloc(1, sizeof(*cache));
    _cleanup_free_ char *directory = NULL;
    struct utsname machine;
    int ret;

    if (!cache)
        return -ENOMEM;
    cache->options = *options;
    list_init(&cache->jobs.installs);
    list_init(&cache->jobs.removals);
    ret = uname(&machine) < 0 ? -errno : held_images_init(&cache->held);
    if (ret == 0)
        (void)snprintf(cache->architecture, sizeof(cache->architecture), "%s", machine.machine);
    if (ret == 0)
        ret = table_new(&cache->missing);
    if (ret == 0 && !(directory = image_cache_directory(settings)))
        ret = -ENOMEM;
    if (ret < 0)
        return ret;
    ret = image_remove_leftovers(options->loop, directory, NULL, &cache->jobs.removals);
    if (ret < 0 && ret != -ENOENT)
        log_event(LOG_WARN, "image_leftovers", log_text("directory", directory),
                  log_text("error", strerror(-ret)));
    *ret_cache = take_ptr(cache);
    return 0;
}

void image_cache_free(struct image_cache *cache)
{
    if (!cache)
        return;
    image_jobs_kill(&cache->jobs);
    table_free(cache->missing); /* empty: nobody waits */
    held_images_done(&cache->held);
    free(cache);
}
