/* image_verify.c - image::verify: reads images and compares them with their digests, one after
 * the other. A damaged one counts as missing from then on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "adapter.h"
#include "codec.h"
#include "image_install.h"
#include "image_operations.h"

struct verify {
    struct image_call call;
    char *directory;
    struct disk_images images;        /* of the start */
    char only[HASH_SHA256_HEX_BYTES]; /* "": all */
    size_t next;
    struct image_install *check; /* NULL: none runs */
    struct image_verify_reply reply;
};

static void verify_go_on(struct verify *verify);

static void verify_free(struct image_call *call)
{
    struct verify *verify = CONTAINER_OF(call, struct verify, call);

    if (verify->check)
        image_install_abandon(verify->check);
    disk_images_done(&verify->images);
    codec_free(&type_image_verify_reply, &verify->reply);
    free(verify->directory);
    free(verify);
}

static void fail_errno(struct verify *verify, int error)
{
    struct sandbox_error err = { 0 };

    sandbox_error_set(&err, S300, "the images cannot be verified: %s", strerror(-error));
    image_call_fail(&verify->call, &err);
}

/* The outcome for the image before `next`; PROBLEM NULL: it is right. */
static int verify_note(struct verify *verify, const char *problem)
{
    const struct image *image = &verify->images.items[verify->next - 1].image;
    struct image_verified *entry = &verify->reply.images.items[verify->reply.images.count++];

    *entry = (struct image_verified){
        .name = strdup(image->name),
        .digest = strdup(image->digest),
        .state = strdup(problem ? "damaged" : "ready"),
        .has_problem = problem != NULL,
        .problem = problem ? strdup(problem) : NULL,
    };
    if (problem)
        verify->reply.damaged = true;
    return entry->name && entry->digest && entry->state && (!problem || entry->problem)
               ? 0
               : -ENOMEM;
}

/* The image before `next` was removed meanwhile. */
static bool verify_is_gone(const struct verify *verify)
{
    _cleanup_free_ char *path = NULL;

    if (asprintf(&path, "%s/%s", verify->directory,
                 verify->images.items[verify->next - 1].image.digest) < 0) {
        path = NULL;
        return false;
    }
    return access(path, F_OK) < 0 && errno == ENOENT;
}

static void on_ended(void *ctx, bool installed, const struct image_install_failure *failure)
{
    struct verify *verify = ctx;
    const char *problem = NULL;

    verify->check = NULL;
    if (failure)
        problem = *failure->cause ? failure->cause : "it has no image.json";
    if (problem && verify_is_gone(verify))
        verify_go_on(verify); /* which is no damage */
    else if (verify_note(verify, problem) < 0)
        fail_errno(verify, -ENOMEM);
    else
        verify_go_on(verify);
}

static int verify_begin(struct verify *verify, const struct image *image)
{
    static const struct image_install_events events = { .ended = on_ended };
    struct request *request = verify->call.request;
    struct adapter *adapter = request_adapter(request);

    return image_install_begin(
        adapter_loop(adapter),
        &(struct image_install_spec){ .images_directory = verify->directory,
                                      .digest = image->digest,
                                      .image = image->name,
                                      .source_text = image->source,
                                      .timeout_ms = request_settings(request)->pull_timeout_ms,
                                      .flags = IMAGE_ALWAYS_CHECK },
        image_cache_jobs(adapter_images(adapter)), &events, verify, &verify->check);
}

/* The next image, or the answer. */
static void verify_go_on(struct verify *verify)
{
    while (verify->next < verify->images.count) {
        const struct image *image = &verify->images.items[verify->next++].image;
        int ret;

        if (*verify->only && strcmp(verify->only, image->digest) != 0)
            continue;
        ret = verify_begin(verify, image);
        if (ret < 0)
            fail_errno(verify, ret);
        return;
    }
    image_call_reply(&verify->call, &type_image_verify_reply, &verify->reply);
}

static void on_cancel(void *ctx)
{
    fail_errno(ctx, -ECANCELED);
}

static int verify_prepare(struct verify *verify, const struct image_verify_request *wish,
                          struct sandbox_error *err)
{
    struct request *request = verify->call.request;
    int ret;

    verify->directory = image_cache_directory(request_settings(request));
    ret = verify->directory ? disk_images_read(verify->directory, &verify->images) : -ENOMEM;
    if (ret == 0) {
        verify->reply.images.items = calloc(verify->images.count + 1,
                                            sizeof(*verify->reply.images.items));
        ret = verify->reply.images.items ? 0 : -ENOMEM;
    }
    if (ret < 0)
        return sandbox_error_set(err, S300, "the images cannot be verified: %s",
                                 strerror(-ret));
    if (!wish->has_image)
        return 0;
    if (image_find(request, wish->image, &verify->images, verify->only, err) < 0)
        return -1;
    if (!disk_images_find(&verify->images, verify->only))
        return sandbox_error_set(err, S001, "image: %s is not on disk", wish->image);
    return 0;
}

void image_verify_serve(struct request *request, const void *body)
{
    struct verify *verify = calloc(1, sizeof(*verify));
    struct sandbox_error err = { 0 };

    if (!verify) {
        sandbox_error_set(&err, S300, "the images cannot be verified: no memory");
        request_fail(request, &err);
        return;
    }
    image_call_begin(&verify->call, request, verify_free);
    if (verify_prepare(verify, body, &err) < 0) {
        image_call_fail(&verify->call, &err);
        return;
    }
    request_on_cancel(request, on_cancel, verify);
    verify_go_on(verify);
}
