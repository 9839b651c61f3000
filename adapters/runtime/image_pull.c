/* image_pull.c - image::pull: brings an image of the catalog to the disk, before somebody waits
 * for it. Shares the work with a `create` that needs the same one. */
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "catalog.h"
#include "codec.h"
#include "image_operations.h"
#include "progress.h"

struct pull {
    struct image_call call;
    char *image;
    const char *source; /* borrowed from the request's settings */
    struct image_wait *wait;
    uint64_t began_ms;
};

static void pull_free(struct image_call *call)
{
    struct pull *pull = CONTAINER_OF(call, struct pull, call);

    image_wait_free(pull->wait);
    free(pull->image);
    free(pull);
}

static struct loop *pull_loop(const struct pull *pull)
{
    return adapter_loop(request_adapter(pull->call.request));
}

static void on_progress(void *ctx, const struct image_progress *progress)
{
    struct pull *pull = ctx;

    progress_image(pull->call.request, pull->source, progress);
}

static uint64_t size_on_disk(const struct pull *pull, const char *digest)
{
    _cleanup_free_ char *directory = image_cache_directory(
        request_settings(pull->call.request));
    struct disk_images images = { 0 };
    const struct disk_image *image;
    uint64_t size_bytes;

    if (!directory || disk_images_read(directory, &images) < 0)
        return 0;
    image = disk_images_find(&images, digest);
    size_bytes = image ? image->size_bytes : 0;
    disk_images_done(&images);
    return size_bytes;
}

static void on_done(void *ctx, const struct image *own_image, bool installed,
                    struct sandbox_error *err)
{
    struct pull *pull = ctx;
    struct image_pull_reply reply = { .image = pull->image, .installed = installed };

    if (err) {
        image_call_fail(&pull->call, err);
        return;
    }
    reply.digest = own_image->digest;
    reply.size_bytes = size_on_disk(pull, own_image->digest);
    reply.duration_ms = loop_now_ms(pull_loop(pull)) - pull->began_ms;
    image_call_reply(&pull->call, &type_image_pull_reply, &reply);
    image_unref(own_image);
}

/* Its caller is gone: an install that nobody else waits for ends. */
static void on_cancel(void *ctx)
{
    struct pull *pull = ctx;
    struct sandbox_error err = { 0 };

    sandbox_error_set(&err, S102, "image %s (source %s): step wait: its caller is gone",
                      pull->image, pull->source);
    image_call_fail(&pull->call, &err);
}

void image_pull_serve(struct request *request, const void *body)
{
    static const struct image_wait_events events = { .progress = on_progress, .done = on_done };
    const struct image_pull_request *wish = body;
    const struct adapter_settings *settings = request_settings(request);
    unsigned flags = IMAGE_MAY_INSTALL | (wish->anew ? IMAGE_ANEW : 0);
    struct sandbox_error err = { 0 };
    struct pull *pull;

    if (!catalog_source(settings, wish->image)) {
        (void)catalog_refuse(settings, wish->image, "is not in the catalog", &err);
        request_fail(request, &err);
        return;
    }
    pull = calloc(1, sizeof(*pull));
    if (pull) {
        image_call_begin(&pull->call, request, pull_free);
        pull->image = strdup(wish->image);
        pull->source = catalog_source(settings, wish->image);
        pull->began_ms = loop_now_ms(pull_loop(pull));
    }
    if (!pull || !pull->image ||
        image_cache_get(adapter_images(request_adapter(request)), request_settings(request),
                        pull->image, flags, &events, pull, &pull->wait) < 0) {
        sandbox_error_set(&err, S102, "image %s: step start: no memory", wish->image);
        if (pull)
            image_call_fail(&pull->call, &err);
        else
            request_fail(request, &err);
        return;
    }
    request_on_cancel(request, on_cancel, pull);
}
