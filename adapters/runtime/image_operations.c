/* image_operations.c - see image_operations.h; image::ls, rm and prune are here. */
#include "image_operations.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "catalog.h"
#include "codec.h"
#include "image_collect.h"

#define MIB (1024u * 1024u)

/* Calls. */

void image_call_begin(struct image_call *call, struct request *request,
                      void (*free)(struct image_call *call))
{
    call->request = request;
    call->free = free;
    list_append(adapter_image_calls(request_adapter(request)), &call->node);
}

static struct request *call_end(struct image_call *call)
{
    struct request *request = call->request;

    request_on_cancel(request, NULL, NULL);
    list_remove(&call->node);
    call->free(call);
    return request;
}

/* REPLY may lie in the call: it is encoded first. */
void image_call_reply(struct image_call *call, const struct type *type, const void *reply)
{
    struct request *request = call->request;

    request_on_cancel(request, NULL, NULL);
    request_reply_as(request, type, reply);
    list_remove(&call->node);
    call->free(call);
}

void image_call_fail(struct image_call *call, struct sandbox_error *err)
{
    request_fail(call_end(call), err);
}

void image_calls_drop(struct list *calls)
{
    LIST_FOREACH(node, calls)
    {
        struct image_call *call = LIST_ENTRY(node, struct image_call, node);

        list_remove(&call->node);
        call->free(call);
    }
}

static void fail_errno(struct request *request, const char *step, int error)
{
    struct sandbox_error err = { 0 };

    sandbox_error_set(&err, S300, "%s: %s", step, strerror(-error));
    request_fail(request, &err);
}

int image_find(struct request *request, const char *text, const struct disk_images *images,
               char ret_digest[HASH_SHA256_HEX_BYTES], struct sandbox_error *err)
{
    const struct adapter_settings *settings = request_settings(request);

    if (catalog_source(settings, text)) {
        image_cache_digest(adapter_images(request_adapter(request)), settings, text,
                           ret_digest);
        return 0;
    }
    if (!disk_images_find(images, text))
        return catalog_refuse(settings, text,
                              "is neither in the catalog nor a digest of image::ls", err);
    (void)snprintf(ret_digest, HASH_SHA256_HEX_BYTES, "%s", text);
    return 0;
}

static int read_disk(struct request *request, struct disk_images *ret_images)
{
    _cleanup_free_ char *directory = image_cache_directory(request_settings(request));

    return directory ? disk_images_read(directory, ret_images) : -ENOMEM;
}

/* image::ls */

static const char *state_of(const struct disk_image *image, bool installing)
{
    if (installing)
        return "installing";
    if (!image)
        return "missing";
    if (!image->usable)
        return "damaged";
    return image->checked ? "ready" : "unchecked";
}

/* Borrows all its texts. IMAGE NULL: not on disk. */
static struct image_entry describe(const struct disk_image *image, const char *name,
                                   const char *source, const char *digest)
{
    struct image_entry entry = { .name = (char *)name,
                                 .source = (char *)source,
                                 .digest = (char *)digest };

    if (!image)
        return entry;
    entry.has_size_bytes = entry.has_installed_at = entry.has_used_at = true;
    entry.size_bytes = image->size_bytes;
    entry.installed_at = image->installed_at;
    entry.used_at = image->used_at;
    entry.in_use = image->in_use;
    return entry;
}

struct listing {
    const struct adapter_settings *settings;
    struct image_cache *cache;
    struct disk_images disk;
    char (*digests)[HASH_SHA256_HEX_BYTES]; /* of the catalog, in its order */
    struct image_ls_reply reply;
    size_t named;
};

static void list_catalog(struct listing *listing)
{
    const char *name;
    bool is_preset;

    for (size_t i = 0; (name = catalog_name(listing->settings, i, &is_preset)); i++) {
        char *digest = listing->digests[i];
        const struct disk_image *image;
        struct image_entry *entry = &listing->reply.images.items[listing->named++];

        image_cache_digest(listing->cache, listing->settings, name, digest);
        image = disk_images_find(&listing->disk, digest);
        *entry = describe(image, name, catalog_source(listing->settings, name), digest);
        entry->kind = is_preset ? (char *)"preset" : (char *)"custom";
        entry->allowed = catalog_allows(listing->settings, name);
        entry->state = (char *)state_of(
            image, image_cache_installs(listing->cache, listing->settings, digest));
    }
    listing->reply.images.count = listing->named;
}

static bool is_listed(const struct listing *listing, const char *digest)
{
    for (size_t i = 0; i < listing->named; i++)
        if (strcmp(listing->digests[i], digest) == 0)
            return true;
    return false;
}

static void list_others(struct listing *listing)
{
    for (size_t i = 0; i < listing->disk.count; i++) {
        const struct disk_image *image = &listing->disk.items[i];
        struct image_entry *entry;

        if (is_listed(listing, image->image.digest))
            continue;
        entry = &listing->reply.images.items[listing->reply.images.count++];
        *entry = describe(image, image->image.name, image->image.source, image->image.digest);
        entry->kind = (char *)"none";
        entry->state = (char *)state_of(image, false);
    }
}

static void serve_ls(struct request *request, const void *body)
{
    const struct adapter_settings *settings = request_settings(request);
    struct listing listing = { .settings = settings,
                               .cache = adapter_images(request_adapter(request)) };
    size_t named = catalog_count(settings);
    int ret = read_disk(request, &listing.disk);
    _cleanup_free_ void *items = NULL, *digests = NULL;

    if (ret == 0) {
        listing.reply.images.items = items = calloc(named + listing.disk.count,
                                                    sizeof(struct image_entry));
        listing.digests = digests = calloc(named, sizeof(*listing.digests));
        ret = items && digests ? 0 : -ENOMEM;
    }
    if (ret == 0) {
        list_catalog(&listing);
        list_others(&listing);
        listing.reply.total_bytes = listing.disk.total_bytes;
        listing.reply.has_limit_bytes = settings->max_cache_mb > 0;
        listing.reply.limit_bytes = (uint64_t)settings->max_cache_mb * MIB;
        request_reply_as(request, &type_image_ls_reply, &listing.reply);
    } else {
        fail_errno(request, "the images cannot be listed", ret);
    }
    disk_images_done(&listing.disk);
}

/* image::rm and image::prune */

struct removal_call {
    struct image_call call;
    struct image_removed removed;
};

static void removal_free(struct image_call *call)
{
    struct removal_call *removal = CONTAINER_OF(call, struct removal_call, call);

    image_removed_done(&removal->removed);
    free(removal);
}

static void on_deleted(void *ctx)
{
    struct removal_call *removal = ctx;
    const struct image_removed_reply reply = { .removed = removal->removed.digests,
                                               .freed_bytes = removal->removed.freed_bytes };

    image_call_reply(&removal->call, &type_image_removed_reply, &reply);
}

/* What has left the cache is deleted, then the call is answered. */
static void delete_removed(struct request *request, struct image_removed *own_removed)
{
    struct image_cache *cache = adapter_images(request_adapter(request));
    struct removal_call *removal = calloc(1, sizeof(*removal));
    int ret = removal ? 0 : -ENOMEM;

    if (ret < 0) {
        image_removed_done(own_removed);
        fail_errno(request, "the images cannot be deleted", ret);
        return;
    }
    removal->removed = *own_removed;
    image_call_begin(&removal->call, request, removal_free);
    ret = image_cache_delete(cache, &removal->removed.paths, on_deleted, removal);
    if (ret < 0)
        on_deleted(removal); /* out of the cache; the next install deletes them */
}

/* Why DIGEST cannot be removed. */
static void set_not_removed(const char *text, int error, struct sandbox_error *err)
{
    if (error == -EBUSY)
        sandbox_error_set(err, S001, "image: %s is in use; stop its sandboxes first", text);
    else if (error == -EAGAIN)
        sandbox_error_set(err, S001, "image: %s is being installed or checked", text);
    else if (error == -ENOENT)
        sandbox_error_set(err, S001, "image: %s is not on disk", text);
    else
        sandbox_error_set(err, S300, "image %s cannot be removed: %s", text, strerror(-error));
}

static int remove_one(struct request *request, const char *text, struct image_removed *removed,
                      struct sandbox_error *err)
{
    _cleanup_free_ char *directory = image_cache_directory(request_settings(request));
    _cleanup_free_ char *path = NULL;
    struct disk_images images = { 0 };
    const struct disk_image *image;
    char digest[HASH_SHA256_HEX_BYTES];
    int ret = read_disk(request, &images);

    if (ret == 0 && image_find(request, text, &images, digest, err) < 0) {
        disk_images_done(&images);
        return -1;
    }
    image = ret == 0 ? disk_images_find(&images, digest) : NULL;
    if (ret == 0)
        ret = !directory ? -ENOMEM
              : !image   ? -ENOENT
                         : disk_image_retire(directory, digest, &path);
    if (ret == 0)
        ret = text_list_append(&removed->digests, digest);
    if (ret == 0)
        ret = text_list_append(&removed->paths, path);
    if (ret == 0)
        removed->freed_bytes = image->size_bytes;
    else
        set_not_removed(text, ret, err);
    disk_images_done(&images);
    return ret < 0 ? -1 : 0;
}

static void serve_rm(struct request *request, const void *body)
{
    const struct image_rm_request *rm = body;
    struct image_removed removed = { 0 };
    struct sandbox_error err = { 0 };

    if (remove_one(request, rm->image, &removed, &err) == 0) {
        delete_removed(request, &removed);
        return;
    }
    image_removed_done(&removed);
    request_fail(request, &err);
}

static void serve_prune(struct request *request, const void *body)
{
    const struct image_prune_request *prune = body;
    const struct adapter_settings *settings = request_settings(request);
    uint32_t max_mb = prune->has_max_mb ? prune->max_mb : settings->max_cache_mb;
    bool has_limit = prune->has_max_mb || settings->max_cache_mb > 0;
    struct image_removed removed = { 0 };
    int ret = 0;

    if (has_limit)
        ret = image_collect(adapter_images(request_adapter(request)), settings,
                            (uint64_t)max_mb * MIB, NULL, &removed);
    if (ret == 0) {
        delete_removed(request, &removed);
        return;
    }
    image_removed_done(&removed);
    fail_errno(request, "the images cannot be collected", ret);
}

/* Which is which. */

static const struct image_operation {
    const char *name;
    const struct type *request;
    void (*serve)(struct request *request, const void *body);
} image_operations[] = {
    { "image::ls", &type_image_ls_request, serve_ls },
    { "image::pull", &type_image_pull_request, image_pull_serve },
    { "image::rm", &type_image_rm_request, serve_rm },
    { "image::prune", &type_image_prune_request, serve_prune },
    { "image::verify", &type_image_verify_request, image_verify_serve },
};

static void decode_and_serve(struct request *request, const struct image_operation *operation)
{
    struct sandbox_error err = { 0 };
    size_t size;
    const char *json = request_json(request, &size);
    void *body = calloc(1, operation->request->size);

    if (!body) {
        fail_errno(request, operation->name, -ENOMEM);
    } else if (codec_decode_json(operation->request, json, size, body, &err) < 0) {
        request_fail(request, &err);
    } else {
        operation->serve(request, body);
        codec_free(operation->request, body);
    }
    free(body);
}

bool image_operations_serve(struct request *request)
{
    const char *name = request_operation_name(request);

    for (size_t i = 0; i < ARRAY_SIZE(image_operations); i++) {
        if (strcmp(image_operations[i].name, name) != 0)
            continue;
        decode_and_serve(request, &image_operations[i]);
        return true;
    }
    return false;
}
