/* image_cache.c - see image_cache.h. */
#include "image_cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "catalog.h"
#include "codec.h"
#include "hash.h"
#include "image_file.h"
#include "image_install.h"
#include "image_remove.h"
#include "list.h"
#include "log.h"
#include "table.h"

/* Goes up when the same source would be installed in another way. */
#define IMAGE_RECIPE_VERSION 1

/* Where an image belongs, by what is asked for. */
struct place {
    char digest[HASH_SHA256_HEX_BYTES];
    char *images_directory;
    char *directory;
};

struct image_cache {
    struct adapter *adapter;
    char architecture[sizeof(((struct utsname *)0)->machine)];
    struct table *held;    /* struct held_image by directory */
    struct table *missing; /* struct missing_image by directory */
    struct image_jobs jobs;
};

/* An image that somebody holds. */
struct held_image {
    struct image image;
    struct image_cache *cache;
    unsigned references;
};

/* An image that is being installed. */
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

/* Images that are there. */

const struct image *image_ref(const struct image *image)
{
    struct held_image *held = CONTAINER_OF(image, struct held_image, image);

    held->references++;
    return image;
}

static void held_free(struct held_image *held)
{
    free(held->image.name);
    free(held->image.digest);
    free(held->image.directory);
    free(held->image.workdir);
    text_list_done(&held->image.env);
    free(held);
}

void image_unref(const struct image *image)
{
    struct held_image *held;

    if (!image)
        return;
    held = CONTAINER_OF(image, struct held_image, image);
    if (--held->references > 0)
        return;
    if (table_get_text(held->cache->held, image->directory) == held)
        (void)table_remove_text(held->cache->held, image->directory); /* itself */
    held_free(held);
}

/* One reference to the image in DIRECTORY; -ENOENT, or another -errno if it is not usable. */
static int cache_load(struct image_cache *cache, const char *directory, const char *digest,
                      const struct image **ret_image)
{
    struct held_image *held = table_get_text(cache->held, directory);
    struct held_image *loaded = calloc(1, sizeof(*loaded));
    int ret = loaded ? image_file_read(directory, &loaded->image) : -ENOMEM;

    if (ret == 0 && held) { /* still there, and what we have is as good */
        held_free(loaded);
        *ret_image = image_ref(&held->image);
        return 0;
    }
    if (ret == 0) {
        loaded->cache = cache;
        loaded->references = 1;
        loaded->image.digest = strdup(digest);
        loaded->image.directory = strdup(directory);
        ret = loaded->image.digest && loaded->image.directory
                  ? table_put_text(cache->held, loaded->image.directory, loaded)
                  : -ENOMEM;
    }
    if (ret < 0) {
        if (loaded)
            held_free(loaded);
        return ret;
    }
    *ret_image = &loaded->image;
    return 0;
}

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

static int cache_place(struct image_cache *cache, const struct adapter_settings *settings,
                       const char *image, struct place *ret_place)
{
    const struct backend_ops *ops = adapter_ops(cache->adapter);
    const char *addition = catalog_addition(settings, image);
    struct place place = { 0 };
    struct hash_sha256 hash;
    char recipe[16];

    (void)snprintf(recipe, sizeof(recipe), "%d", IMAGE_RECIPE_VERSION);
    hash_sha256_init(&hash);
    hash_text(&hash, catalog_source(settings, image));
    hash_text(&hash, addition ? addition : "");
    hash_text(&hash, recipe);
    hash_text(&hash, ops->image_flavor(adapter_backend(cache->adapter)));
    hash_text(&hash, cache->architecture);
    hash_sha256_final_hex(&hash, place.digest);
    if (asprintf(&place.images_directory, "%s/images", settings->cache_dir) < 0)
        place.images_directory = NULL;
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
static void wait_tell(struct image_wait *wait, const struct image *own_image,
                      struct sandbox_error *err)
{
    wait->missing = NULL;
    wait->events->done(wait->ctx, own_image, err);
}

static void on_answer(void *ctx)
{
    struct image_wait *wait = ctx;
    struct sandbox_error *err = take_ptr(wait->err);
    const struct image *found = take_ptr(wait->found);

    wait_tell(wait, found, err);
    if (err)
        sandbox_error_done(err);
    free(err);
}

/* Answers WAIT before the loop waits again; without memory for the error it has no text. */
static int wait_refuse(struct image_wait *wait, enum sandbox_code code, const char *step,
                       const char *cause)
{
    wait->err = calloc(1, sizeof(*wait->err));
    if (!wait->err)
        return -ENOMEM;
    if (code == S101)
        sandbox_error_set(wait->err, S101, "image %s is not in %s, and auto_install is off",
                          wait->image, cause);
    else
        sandbox_error_set(wait->err, S102, "image %s (source %s): step %s: %s", wait->image,
                          wait->source, step, cause);
    loop_defer(adapter_loop(wait->cache->adapter), &wait->answer);
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
static void missing_free(struct missing_image *missing)
{
    if (table_get_text(missing->cache->missing, missing->directory) == missing)
        (void)table_remove_text(missing->cache->missing, missing->directory); /* itself */
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
    loop_notice_cancel(adapter_loop(wait->cache->adapter), &wait->answer);
    image_unref(wait->found);
    if (wait->err)
        sandbox_error_done(wait->err);
    free(wait->err);
    free(wait->image);
    free(wait->source);
    free(wait);
}

static void on_progress(void *ctx, enum image_stage stage, uint64_t bytes, uint64_t total_bytes)
{
    struct missing_image *missing = ctx;

    /* Reporting sends events, it frees no waits. */
    LIST_FOREACH(node, &missing->waits)
    {
        struct image_wait *wait = LIST_ENTRY(node, struct image_wait, node);

        wait->events->progress(wait->ctx, stage, bytes, total_bytes);
    }
}

static void wait_tell_failure(struct image_wait *wait,
                              const struct image_install_failure *failure)
{
    struct sandbox_error err = { 0 };

    sandbox_error_set(&err, S102, "image %s (source %s): step %s: %s", wait->image,
                      wait->source, failure->step, failure->cause);
    wait_tell(wait, NULL, &err);
    sandbox_error_done(&err);
}

static void on_ended(void *ctx, const struct image_install_failure *failure)
{
    struct missing_image *missing = ctx;
    struct image_install_failure unusable = { .step = "finish" };
    const struct image *image = NULL;
    struct list waits, *node;

    list_init(&waits);
    list_move_all(&waits, &missing->waits);
    if (!failure) {
        int ret = cache_load(missing->cache, missing->directory, missing->digest, &image);

        if (ret < 0) {
            (void)snprintf(unusable.cause, sizeof(unusable.cause), "%s: %s", missing->directory,
                           strerror(-ret));
            failure = &unusable;
        }
    }
    LIST_FOREACH(waiting, &waits)
    LIST_ENTRY(waiting, struct image_wait, node)->missing = NULL;
    missing_free(missing);
    while ((node = list_pop(&waits))) {
        struct image_wait *wait = LIST_ENTRY(node, struct image_wait, node);

        if (image)
            wait_tell(wait, image_ref(image), NULL);
        else
            wait_tell_failure(wait, failure);
    }
    image_unref(image);
}

static const struct image_install_events install_events = {
    .progress = on_progress,
    .ended = on_ended,
};

static int missing_begin(struct image_cache *cache, struct snapshot *snapshot,
                         const struct image_wait *wait, const struct source *source,
                         const struct place *place, struct missing_image **ret_missing)
{
    const struct adapter_settings *settings = snapshot_adapter(snapshot);
    const struct backend_ops *ops = adapter_ops(cache->adapter);
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
            adapter_loop(cache->adapter),
            &(struct image_install_spec){
                .installer = ops->installer(adapter_backend(cache->adapter)),
                .images_directory = place->images_directory,
                .digest = place->digest,
                .image = wait->image,
                .source_text = wait->source,
                .source = source,
                .addition = catalog_addition(settings, wait->image),
                .architecture = cache->architecture,
                .timeout_ms = settings->pull_timeout_ms },
            &cache->jobs, &install_events, missing, &missing->install);
    if (ret < 0) {
        if (missing)
            missing_free(missing);
        return ret;
    }
    *ret_missing = missing;
    return 0;
}

/* 0: WAIT is answered or waits. */
static int cache_install(struct image_cache *cache, struct snapshot *snapshot,
                         const struct place *place, struct image_wait *wait)
{
    const struct adapter_settings *settings = snapshot_adapter(snapshot);
    struct missing_image *missing = table_get_text(cache->missing, place->directory);
    struct source source = { 0 };
    char why[SOURCE_WHY_MAX];
    int ret;

    if (!missing) {
        if (!settings->auto_install)
            return wait_refuse(wait, S101, "", place->directory);
        ret = source_parse(wait->source, &settings->insecure_registries, &source, why);
        if (ret == -EINVAL)
            return wait_refuse(wait, S102, "source", why);
        if (ret == 0)
            ret = missing_begin(cache, snapshot, wait, &source, place, &missing);
        source_done(&source);
        if (ret < 0)
            return wait_refuse(wait, S102, "start", strerror(-ret));
    }
    wait->missing = missing;
    list_append(&missing->waits, &wait->node);
    return 0;
}

int image_cache_get(struct image_cache *cache, struct snapshot *snapshot, const char *image,
                    const struct image_wait_events *events, void *ctx,
                    struct image_wait **ret_wait)
{
    const struct adapter_settings *settings = snapshot_adapter(snapshot);
    _cleanup_(image_wait_freep)
    struct image_wait *wait = wait_new(cache, image, catalog_source(settings, image), events,
                                       ctx);
    struct place place;
    int ret = wait ? cache_place(cache, settings, image, &place) : -ENOMEM;

    if (ret < 0)
        return ret;
    if (cache_load(cache, place.directory, place.digest, &wait->found) == 0)
        loop_defer(adapter_loop(cache->adapter), &wait->answer);
    else
        ret = cache_install(cache, snapshot, &place, wait);
    place_done(&place);
    if (ret < 0)
        return ret;
    *ret_wait = take_ptr(wait);
    return 0;
}

/* Life. */

int image_cache_new(struct adapter *adapter, struct image_cache **ret_cache)
{
    _cleanup_(image_cache_freep)
    struct image_cache *cache = calloc(1, sizeof(*cache));
    _cleanup_free_ char *directory = NULL;
    struct utsname machine;
    int ret;

    if (!cache)
        return -ENOMEM;
    cache->adapter = adapter;
    list_init(&cache->jobs.installs);
    list_init(&cache->jobs.removals);
    ret = uname(&machine) < 0 ? -errno : table_new(&cache->held);
    if (ret == 0)
        (void)snprintf(cache->architecture, sizeof(cache->architecture), "%s", machine.machine);
    if (ret == 0)
        ret = table_new(&cache->missing);
    if (ret == 0 &&
        asprintf(&directory, "%s/images", adapter_settings(adapter)->cache_dir) < 0) {
        directory = NULL;
        ret = -ENOMEM;
    }
    if (ret < 0)
        return ret;
    ret = image_remove_leftovers(adapter_loop(adapter), directory, NULL, &cache->jobs.removals);
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
    table_free(cache->held);    /* empty: nobody holds an image */
    free(cache);
}
