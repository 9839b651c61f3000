/* worker_call.c - worker::prepare and worker::start up to their job: the checks, in the order
 * of contract 12.2, and what can be answered at once. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "caps.h"
#include "catalog.h"
#include "hash.h"
#include "worker.h"
#include "worker_job.h"
#include "worker_keys.h"

/* What both requests have, and what the checks found out. */
struct judged {
    struct worker_call *call;
    const struct adapter_settings *settings;
    bool start;
    const char *state_key, *host_path, *image;
    struct worker_key *key;
    struct source_folder source;
    struct state_mark has;  /* mark of the state */
    struct state_mark want; /* mark it is to have */
    uint32_t cpus, memory_mb;
};

static void judged_init(struct judged *judged, struct worker_call *call)
{
    const struct worker_prepare_request *prepare = request_body(call->request);
    const struct worker_start_request *start = request_body(call->request);
    const struct adapter_settings *settings = request_settings(call->request);

    *judged = (struct judged){
        .call = call,
        .settings = settings,
        .start = request_operation(call->request)->id == OP_worker_start,
        .source = { .fd = -1 },
    };
    judged->state_key = judged->start ? start->state_key : prepare->state_key;
    judged->host_path = judged->start ? start->source.host_path : prepare->source.host_path;
    judged->image = judged->start ? NULL : prepare->image;
    judged->key = worker_keys_find(call->workers, judged->state_key);
}

static struct worker *live_worker(const struct judged *judged)
{
    return judged->key ? judged->key->live : NULL;
}

static const char *given_token(const struct judged *judged)
{
    const struct worker_prepare_request *prepare = request_body(judged->call->request);
    const struct worker_start_request *start = request_body(judged->call->request);

    return judged->start ? start->auth_token : prepare->auth_token;
}

static const char *given_instance(const struct judged *judged)
{
    const struct worker_prepare_request *prepare = request_body(judged->call->request);
    const struct worker_start_request *start = request_body(judged->call->request);

    return judged->start ? start->instance : prepare->instance;
}

/* S505, then S503. Of a start another instance is S502, at its place. */
static int check_holder(const struct judged *judged, struct sandbox_error *err)
{
    const struct worker *live = live_worker(judged);
    const char *instance = given_instance(judged);

    if (!live)
        return 0;
    if (worker_check_token(live, judged->call->request, given_token(judged), err) < 0)
        return -1;
    if (judged->start || !instance)
        return 0;
    return worker_check_instance(live, instance, err);
}

/* S501: folder, manifest, and what the operation needs of it. */
static int check_source(struct judged *judged, struct sandbox_error *err)
{
    if (source_folder_open(judged->host_path, &judged->settings->allowed_roots, &judged->source,
                           err) < 0)
        return -1;
    if (judged->start && !judged->source.manifest.start)
        return sandbox_error_set(err, S501, "%s/" MANIFEST_FILE ": scripts.start is required",
                                 judged->source.path);
    return 0;
}

/* Each part with its size, so that no two manifests look the same. */
static void hash_part(struct hash_sha256 *hash, const void *data, size_t size)
{
    uint64_t size_u64 = size;

    hash_sha256_update(hash, &size_u64, sizeof(size_u64));
    if (size > 0)
        hash_sha256_update(hash, data, size);
}

static void hash_text(struct hash_sha256 *hash, const char *text)
{
    hash_part(hash, text ? text : "", text ? strlen(text) : 0);
}

/* Manifest, scripts, base image by name and source. */
static void fill_digest(struct judged *judged)
{
    const struct source_folder *source = &judged->source;
    struct hash_sha256 hash;

    hash_sha256_init(&hash);
    hash_part(&hash, source->text.data, source->text.size);
    hash_text(&hash, source->manifest.setup);
    hash_text(&hash, source->manifest.install);
    hash_text(&hash, judged->want.image);
    hash_text(&hash, catalog_source(judged->settings, judged->want.image));
    hash_sha256_final_hex(&hash, judged->want.digest);
}

/* Which image: that of the prepare's caller, which a start keeps; else the manifest's; else the
 * one the state was prepared with. S501 when there is none. */
static int choose_image(struct judged *judged, struct sandbox_error *err)
{
    const char *manifest = judged->source.manifest.base_image;
    const char *kept = judged->start && judged->has.digest[0] ? judged->has.image : NULL;
    const char *chosen = judged->start && judged->has.image_chosen ? kept : judged->image;
    const char *image = chosen ? chosen : manifest ? manifest : kept;

    if (!image)
        return sandbox_error_set(err, S501,
                                 "%s/" MANIFEST_FILE
                                 ": runtime.base_image is missing and the request has no image",
                                 judged->source.path);
    (void)snprintf(judged->want.image, sizeof(judged->want.image), "%s", image);
    judged->want.image_chosen = chosen != NULL;
    return 0;
}

static int read_state(struct judged *judged, struct sandbox_error *err)
{
    _cleanup_free_ char *root = NULL;
    struct state_folder folder;
    int result = asprintf(&root, "%s/%s", judged->settings->state_dir,
                          adapter_name(judged->call->workers->adapter));

    if (result < 0)
        root = NULL;
    else
        result = state_folder_open(root, judged->state_key, &folder);
    if (result < 0)
        return sandbox_error_set(err, S300, "state_key %s: no memory", judged->state_key);
    state_folder_mark(&folder, &judged->has);
    state_folder_done(&folder);
    if (choose_image(judged, err) < 0)
        return -1;
    fill_digest(judged);
    return 0;
}

static bool is_prepared(const struct judged *judged)
{
    return strcmp(judged->has.digest, judged->want.digest) == 0;
}

static void fill_resources(struct judged *judged)
{
    const struct worker_start_request *start = request_body(judged->call->request);
    const struct manifest *manifest = &judged->source.manifest;

    judged->cpus = judged->start && start->has_cpus ? start->cpus : manifest->cpus;
    judged->memory_mb = judged->start && start->has_memory_mb ? start->memory_mb
                                                              : manifest->memory_mb;
}

/* S100, S400; the place is taken. */
static int check_room(struct judged *judged, struct sandbox_error *err)
{
    struct workers *workers = judged->call->workers;
    const char *source;

    if (catalog_check(judged->settings, judged->want.image, &source, err) < 0 ||
        caps_check(judged->settings, judged->want.image, judged->cpus, judged->memory_mb, err) <
            0)
        return -1;
    if (workers->places >= judged->settings->max_worker_vms)
        return sandbox_error_set(
            err, S400, "max_worker_vms is %u and %u worker VMs are live: 1 more was requested",
            judged->settings->max_worker_vms, workers->places);
    if (!judged->key)
        judged->key = worker_keys_add(workers, judged->state_key);
    if (!judged->key)
        return sandbox_error_set(err, S300, "state_key %s: no memory", judged->state_key);
    workers->places++;
    return 0;
}

static void reply_cached(struct worker_call *own_call, const char *state_key)
{
    struct worker_prepare_reply reply = {
        .state_key = (char *)state_key,
        .prepared = true,
        .cached = true,
        .duration_ms = loop_now_ms(own_call->workers->loop) - own_call->began_ms,
    };

    request_reply(own_call->request, &reply);
    free(own_call);
}

static void reply_live(struct worker_call *own_call, struct worker *worker)
{
    struct worker_start_reply reply = {
        .vm_id = worker->id,
        .instance = worker->instance,
        .state = (char *)"running",
    };

    request_reply(own_call->request, &reply);
    free(own_call);
}

/* What a live worker means for the call. True: it was answered. */
static bool answer_from_live(struct judged *judged, struct sandbox_error *err)
{
    struct worker *live = live_worker(judged);

    if (!live)
        return false;
    if (judged->start && strcmp(live->instance, given_instance(judged)) == 0) {
        reply_live(judged->call, live);
        return true;
    }
    (void)sandbox_error_set(err, S502, "state_key %s is held by the live VM %s",
                            judged->state_key, live->id);
    worker_add_fix(live, err);
    return false;
}

static bool key_busy(const struct judged *judged)
{
    return judged->key && (judged->key->job ||
                           (judged->key->live && judged->key->live->state >= WORKER_STOPPING &&
                            judged->key->live->state != WORKER_STUCK));
}

/* Answers, or begins the job, and then the call is consumed; or ERR is set. */
static void judge(struct judged *judged, struct sandbox_error *err)
{
    if (judged->call->workers->ending) {
        (void)sandbox_error_set(err, S300, "state_key %s: the adapter is shutting down",
                                judged->state_key);
        return;
    }
    if (check_source(judged, err) < 0 || read_state(judged, err) < 0)
        return;
    if (!judged->start && is_prepared(judged)) {
        reply_cached(judged->call, judged->state_key);
        judged->call = NULL;
        return;
    }
    if (answer_from_live(judged, err)) {
        judged->call = NULL;
        return;
    }
    fill_resources(judged);
    if (err->code != SANDBOX_OK || check_room(judged, err) < 0)
        return;
    worker_job_begin(&(struct worker_job_spec){
        .key = judged->key,
        .own_call = judged->call,
        .own_source = &judged->source,
        .mark = &judged->want,
        .cpus = judged->cpus,
        .memory_mb = judged->memory_mb,
    });
    judged->call = NULL;
}

void worker_call_judge(struct worker_call *own_call)
{
    struct sandbox_error err = { 0 };
    struct judged judged;

    judged_init(&judged, own_call);
    if (check_holder(&judged, &err) == 0) {
        if (key_busy(&judged)) {
            list_append(&judged.key->waiting, &own_call->node);
            return;
        }
        judge(&judged, &err);
    }
    if (judged.call) {
        sandbox_error_set_outcome(&err, OUTCOME_NEVER_RAN);
        request_fail(judged.call->request, &err);
        free(judged.call);
    }
    source_folder_done(&judged.source);
}
