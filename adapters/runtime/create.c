/* create.c - see create.h; and the operation `create`. */
#include "create.h"

#include <stdio.h>
#include <string.h>

#include "boot.h"
#include "caps.h"
#include "catalog.h"
#include "codec.h"
#include "disk_room.h"
#include "handlers.h"
#include "idempotency.h"
#include "image_cache.h"
#include "progress.h"
#include "registry.h"
#include "sandbox_state.h"
#include "sandboxes.h"

struct creation {
    struct request *request;
    const struct create_request *body;
    creation_done_fn done;
    void *ctx;
    struct sandbox *sandbox;       /* one reference */
    const char *source;            /* of the image, for progress; borrowed from the settings */
    struct image_wait *image_wait; /* until the image is there */
};

static void creation_free(struct creation *creation)
{
    if (!creation)
        return;
    image_wait_free(creation->image_wait);
    sandbox_unref(creation->sandbox);
    free(creation);
}
DEFINE_CLEANUP(struct creation *, creation_free)

/* Hands over the outcome. */
static void creation_finish(struct creation *creation, struct sandbox_error *err)
{
    struct sandbox *sandbox = creation->sandbox;
    creation_done_fn done = creation->done;
    void *ctx = creation->ctx;

    sandbox->give_up = NULL;
    if (!err)
        creation->sandbox = NULL; /* the receiver's */
    else
        sandbox = NULL;
    creation_free(creation);
    done(ctx, sandbox, err);
}

/* There is no machine yet. */
static void creation_discard(struct creation *creation, struct sandbox_error *err)
{
    char why[SANDBOX_WHY_MAX];

    (void)snprintf(why, sizeof(why), "it was not made: %.400s", err->message);
    sandbox_discard(creation->sandbox, why);
    creation_finish(creation, err);
}

void creation_cancel(struct creation *creation, const char *why)
{
    struct sandbox_error err = { 0 };

    if (creation->sandbox->boot) {
        boot_give_up(creation->sandbox, why);
        return;
    }
    (void)sandbox_error_set(&err, S300, "sandbox %s was not made: %s",
                            sandbox_id(creation->sandbox), why);
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    creation_discard(creation, &err);
    sandbox_error_done(&err);
}

static void give_up(void *ctx, const char *why)
{
    creation_cancel(ctx, why);
}

/* Machine and guest. */

static void on_booted(void *ctx, struct sandbox_error *err)
{
    struct creation *creation = ctx;

    if (!err)
        progress_ready(creation->request, sandbox_id(creation->sandbox));
    creation_finish(creation, err);
}

static void creation_boot(struct creation *creation)
{
    const struct adapter_settings *settings = request_settings(creation->request);
    const struct boot_spec spec = {
        .timeout_ms = settings->boot_timeout_ms,
        .disk_mb = sandbox_spec(creation->sandbox)->disk_mb,
        .env = &creation->body->env,
    };
    struct sandbox_error err = { 0 };

    progress_booting(creation->request);
    if (boot_start(creation->sandbox, &spec, on_booted, creation, &err) == 0)
        return;
    sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    creation_discard(creation, &err);
    sandbox_error_done(&err);
}

/* Image. */

static void on_image_progress(void *ctx, const struct image_progress *progress)
{
    struct creation *creation = ctx;

    progress_image(creation->request, creation->source, progress);
}

static void on_image(void *ctx, const struct image *own_image, bool installed,
                     struct sandbox_error *err)
{
    struct creation *creation = ctx;

    image_wait_free(take_ptr(creation->image_wait));
    if (err) {
        creation_discard(creation, err);
        return;
    }
    sandbox_set_image(creation->sandbox, own_image);
    creation_boot(creation);
}

/* Checks. */

static void effective_spec(const struct create_request *body,
                           const struct adapter_settings *settings,
                           struct sandbox_spec *ret_spec)
{
    *ret_spec = (struct sandbox_spec){
        .image = body->image,
        .name = body->name,
        .cpus = body->has_cpus ? body->cpus : settings->default_cpus,
        .memory_mb = body->has_memory_mb ? body->memory_mb : settings->default_memory_mb,
        .disk_mb = settings->max_disk_mb,
        .network = body->network,
        .idle_timeout_secs = body->has_idle_timeout_secs ? body->idle_timeout_secs
                                                         : settings->default_idle_timeout_secs,
    };
}

/* Checks 3 to 5. */
static int creation_check(struct creation *creation, struct sandbox_error *err)
{
    const struct adapter_settings *settings = request_settings(creation->request);
    const struct create_request *body = creation->body;
    const struct sandbox_spec *spec = sandbox_spec(creation->sandbox);

    if (catalog_check(settings, body->image, &creation->source, err) < 0 ||
        caps_check(settings, body->image, spec->cpus, spec->memory_mb, err) < 0 ||
        disk_room_check(request_adapter(creation->request), settings, err) < 0)
        return -1;
    return env_check(&body->env, err);
}

/* The place is reserved. */
static int creation_begin(struct creation *creation, struct sandbox_error *err)
{
    static const struct image_wait_events image_events = {
        .progress = on_image_progress,
        .done = on_image,
    };
    struct request *request = creation->request;
    unsigned flags = request_settings(request)->auto_install ? IMAGE_MAY_INSTALL : 0;

    if (creation_check(creation, err) < 0)
        return -1;
    if (image_cache_get(adapter_images(request_adapter(request)), request_settings(request),
                        creation->body->image, flags, &image_events, creation,
                        &creation->image_wait) < 0)
        return sandbox_error_set(err, S300, "sandbox %s, image: no memory",
                                 sandbox_id(creation->sandbox));
    creation->sandbox->give_up = give_up;
    creation->sandbox->give_up_ctx = creation;
    return 0;
}

static int creation_reserve(struct creation *creation, struct sandbox_error *err)
{
    struct request *request = creation->request;
    const struct adapter_settings *settings = request_settings(request);
    struct registry *registry = sandboxes_registry(adapter_sandboxes(request_adapter(request)));
    struct sandbox_spec spec;

    effective_spec(creation->body, settings, &spec);
    if (registry_reserve(registry, settings->max_concurrent_sandboxes, &spec,
                         &creation->sandbox, err) < 0)
        return -1;
    if (creation_begin(creation, err) == 0)
        return 0;
    sandbox_discard(creation->sandbox, "it was not made");
    return -1;
}

int creation_start(struct request *request, const struct create_request *body,
                   creation_done_fn done, void *ctx, struct creation **ret_creation,
                   struct sandbox_error *err)
{
    _cleanup_(creation_freep)
    struct creation *creation = calloc(1, sizeof(*creation));

    if (!creation) {
        (void)sandbox_error_set(err, S300, "no memory for a further sandbox");
    } else {
        creation->request = request;
        creation->body = body;
        creation->done = done;
        creation->ctx = ctx;
        if (creation_reserve(creation, err) == 0) {
            *ret_creation = take_ptr(creation);
            return 0;
        }
    }
    sandbox_error_set_outcome(err, OUTCOME_NEVER_RAN);
    return -1;
}

/* The operation (contract 5.1). */

struct create_call {
    struct request *request;
    struct creation *creation;
};

static void on_created(void *ctx, struct sandbox *own_sandbox, struct sandbox_error *err)
{
    struct create_call *call = ctx;
    _cleanup_(sandbox_unrefp)
    struct sandbox *sandbox = own_sandbox;

    request_on_cancel(call->request, NULL, NULL);
    if (err) {
        request_fail(call->request, err);
    } else {
        struct create_reply reply = {
            .sandbox_id = (char *)sandbox_id(sandbox),
            .image = (char *)sandbox_spec(sandbox)->image,
        };
        request_tells_of(call->request, reply.sandbox_id);
        request_reply(call->request, &reply);
    }
    free(call);
}

static void on_cancel(void *ctx)
{
    struct create_call *call = ctx;

    creation_cancel(call->creation, "its caller is gone");
}

void handle_create(struct request *request)
{
    struct sandbox_error err = { 0 };
    struct create_call *call;

    if (!idempotency_admit(request))
        return;
    call = calloc(1, sizeof(*call));
    if (!call) {
        (void)sandbox_error_set(&err, S300, "no memory for a further sandbox");
        sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
    } else {
        call->request = request;
    }
    if (!call || creation_start(request, request_body(request), on_created, call,
                                &call->creation, &err) < 0) {
        free(call);
        request_fail(request, &err);
        return;
    }
    request_on_cancel(request, on_cancel, call);
}
