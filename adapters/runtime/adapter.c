/* adapter.c - see adapter.h.
 *
 * Order of birth: settings, back end, tables, link; what can call needs what it calls. Death is
 * the reverse, but for the link, over which the last answers go. */
#include "adapter.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "catalog.h"
#include "channel.h"
#include "handlers.h"
#include "idempotency.h"
#include "image_cache.h"
#include "image_collect.h"
#include "image_operations.h"
#include "log.h"
#include "request.h"
#include "router_call.h"
#include "serve.h"
#include "settings_watch.h"
#include "uuid.h"

#define STOP_TIMEOUT_MS 30000u
#define STOP_LINGER_MS 2000u

enum adapter_state {
    ADAPTER_SERVING,   /* from adapter_new() on */
    ADAPTER_STOPPING,  /* new calls are refused, sandboxes end */
    ADAPTER_FINISHING, /* all sandboxes are gone, the last answers go out */
    ADAPTER_STATE_MAX
};

static const char *const adapter_state_names[] = { "serving", "stopping", "finishing" };
static_assert(ARRAY_SIZE(adapter_state_names) == ADAPTER_STATE_MAX, "a name for each state");

struct adapter {
    struct loop *loop;
    enum adapter_state state;
    const struct backend_ops *ops;
    struct backend *backend;
    const struct fault *fault;
    char *name;
    char *config_path;
    char instance[UUID_TEXT_BYTES];

    struct snapshot *snapshot;
    struct settings_watch *watch;
    struct loop_signal *terminate;
    struct loop_signal *interrupt;
    struct loop_timer *stop_timer;

    struct router_calls *router_calls;
    struct channels *channels;
    struct requests *requests;
    struct idempotency *idempotency;
    struct image_cache *images;
    struct list image_calls; /* struct image_call */
    struct sandboxes *sandboxes;
    struct serve *serve;
};

/* Settings. */

/* What is allowed but surely not meant. */
static void log_odd_settings(const struct adapter_settings *settings)
{
    if (settings->max_concurrent_exec_per_sandbox == 0)
        log_event(LOG_WARN, "setting_acts_as_1",
                  log_text("key", "max_concurrent_exec_per_sandbox"));
    if (settings->max_exec_timeout_ms == 0)
        log_event(LOG_WARN, "setting_acts_as_1", log_text("key", "max_exec_timeout_ms"));
    for (size_t i = 0; i < settings->image_allowlist.count; i++)
        if (!catalog_source(settings, settings->image_allowlist.items[i]))
            log_event(LOG_WARN, "image_allowlist_names_no_image",
                      log_text("image", settings->image_allowlist.items[i]));
    for (size_t i = 0; i < settings->per_image_caps.count; i++) {
        const struct setting_cap *cap = &settings->per_image_caps.items[i];

        if (cap->max_cpus == 0 || cap->max_memory_mb == 0)
            log_event(LOG_WARN, "per_image_cap_is_0", log_text("image", cap->name),
                      log_uint("max_cpus", cap->max_cpus),
                      log_uint("max_memory_mb", cap->max_memory_mb));
    }
}

/* Makes PATH and what is missing above it; 0, or -errno if it is no folder we may write to. */
static int prepare_folder(const char *path)
{
    _cleanup_free_ char *copy = strdup(path);

    if (!copy)
        return -ENOMEM;
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0755) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    if (mkdir(copy, 0700) < 0 && errno != EEXIST)
        return -errno;
    return access(copy, R_OK | W_OK | X_OK) < 0 ? -errno : 0;
}

/* LOAD: settings_load() or settings_reload(). */
static int load_settings(int (*load)(const char *, struct settings **, char *),
                         const char *path, struct settings **ret_settings, char *ret_error)
{
    _cleanup_(settings_freep)
    struct settings *settings = NULL;
    char why[SETTINGS_ERROR_MAX];
    int ret = load(path, &settings, why);

    if (ret < 0) {
        (void)snprintf(ret_error, ADAPTER_ERROR_MAX, "%s", why);
        return ret;
    }
    const struct {
        const char *key, *folder;
    } folders[] = {
        { "cache_dir", settings->adapter.cache_dir },
        { "state_dir", settings->adapter.state_dir },
    };

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        ret = prepare_folder(folders[i].folder);
        if (ret < 0) {
            (void)snprintf(ret_error, ADAPTER_ERROR_MAX, "%s: %s: %s: %s", path, folders[i].key,
                           folders[i].folder, strerror(-ret));
            return ret;
        }
    }
    *ret_settings = take_ptr(settings);
    return 0;
}

void adapter_reload(struct adapter *adapter)
{
    struct settings *settings = NULL;
    char why[ADAPTER_ERROR_MAX];
    struct snapshot *snapshot;
    int ret = load_settings(settings_reload, adapter->config_path, &settings, why);

    if (ret < 0) {
        log_event(ret == -ENODATA ? LOG_WARN : LOG_ERROR, "settings_rejected",
                  log_text("error", why));
        return;
    }
    if (!serve_accepts(adapter->serve, &settings->adapter)) {
        settings_free(settings);
        return; /* it said why */
    }
    snapshot = snapshot_new(settings);
    if (!snapshot) {
        log_event(LOG_ERROR, "settings_rejected", log_text("error", strerror(ENOMEM)));
        return;
    }
    snapshot_unref(adapter->snapshot);
    adapter->snapshot = snapshot;
    log_event(LOG_INFO, "settings_loaded", log_text("path", adapter->config_path));
    log_odd_settings(snapshot_adapter(snapshot));
    adapter->ops->reload(adapter->backend, snapshot_settings(snapshot));
}

static void on_settings_changed(void *ctx)
{
    adapter_reload(ctx);
}

/* Stopping. */

static void adapter_set_state(struct adapter *adapter, enum adapter_state state)
{
    assert(state == adapter->state + 1);
    log_event(LOG_INFO, "adapter_state", log_text("from", adapter_state_names[adapter->state]),
              log_text("to", adapter_state_names[state]));
    adapter->state = state;
}

static void on_finished(void *ctx)
{
    struct adapter *adapter = ctx;

    loop_stop(adapter->loop, 0);
}

static void on_all_gone(void *ctx)
{
    struct adapter *adapter = ctx;

    loop_timer_disarm(adapter->stop_timer);
    adapter_set_state(adapter, ADAPTER_FINISHING);
    serve_finish(adapter->serve, STOP_LINGER_MS, on_finished, adapter);
}

static void on_sandboxes_gone(void *ctx)
{
    struct adapter *adapter = ctx;

    if (adapter->ops->stop)
        adapter->ops->stop(adapter->backend, on_all_gone, adapter);
    else
        on_all_gone(adapter);
}

static void on_stop_timeout(void *ctx)
{
    struct adapter *adapter = ctx;

    log_event(LOG_ERROR, "stop_timeout", log_uint("timeout_ms", STOP_TIMEOUT_MS));
    loop_stop(adapter->loop, 1);
}

void adapter_stop(struct adapter *adapter)
{
    adapter_set_state(adapter, ADAPTER_STOPPING);
    loop_timer_arm(adapter->stop_timer, STOP_TIMEOUT_MS);
    sandboxes_stop_all(adapter->sandboxes, on_sandboxes_gone, adapter);
}

static void on_terminate(void *ctx, int signal_number)
{
    struct adapter *adapter = ctx;

    log_event(LOG_INFO, "signal", log_text("name", sigabbrev_np(signal_number)));
    if (adapter->state == ADAPTER_SERVING)
        adapter_stop(adapter);
    else
        _exit(128 + signal_number); /* machines die with us */
}

/* Birth. */

static int watch_outside(struct adapter *adapter)
{
    int ret = loop_signal_new(adapter->loop, SIGTERM, on_terminate, adapter,
                              &adapter->terminate);

    if (ret == 0)
        ret = loop_signal_new(adapter->loop, SIGINT, on_terminate, adapter,
                              &adapter->interrupt);
    if (ret == 0)
        ret = loop_timer_new(adapter->loop, on_stop_timeout, adapter, &adapter->stop_timer);
    if (ret == 0)
        ret = settings_watch_new(adapter->loop, adapter->config_path, on_settings_changed,
                                 adapter, &adapter->watch);
    return ret;
}

static int open_backend(struct adapter *adapter, char *ret_error)
{
    const struct settings *settings = snapshot_settings(adapter->snapshot);
    struct sandbox_error err = { 0 };
    struct backend_info info = { 0 };

    if (adapter->ops->open(adapter->loop, settings, &adapter->backend, &err) < 0) {
        (void)snprintf(ret_error, ADAPTER_ERROR_MAX, "%s: %s", error_info_get(err.code)->code,
                       err.message);
        sandbox_error_done(&err);
        return -EIO;
    }
    adapter->ops->info(adapter->backend, &info);
    adapter->name = strdup(info.name);
    if (adapter->ops->fault)
        adapter->fault = adapter->ops->fault(adapter->backend);
    return adapter->name ? 0 : -ENOMEM;
}

static void on_image_installed(void *ctx, const char *digest)
{
    struct adapter *adapter = ctx;

    image_collect_by_setting(adapter->images, adapter_settings(adapter), digest);
}

static int open_images(struct adapter *adapter)
{
    const struct image_cache_options options = {
        .loop = adapter->loop,
        .installer = adapter->ops->installer(adapter->backend),
        .flavor = adapter->ops->image_flavor(adapter->backend),
        .installed = on_image_installed,
        .ctx = adapter,
    };

    return image_cache_new(&options, adapter_settings(adapter), &adapter->images);
}

static int make_tables(struct adapter *adapter)
{
    int ret = router_calls_new(adapter, &adapter->router_calls);

    if (ret == 0)
        ret = channels_new(adapter, &adapter->channels);
    if (ret == 0)
        ret = requests_new(adapter, &adapter->requests);
    if (ret == 0)
        ret = idempotency_new(adapter, &adapter->idempotency);
    if (ret == 0)
        ret = open_images(adapter);
    if (ret == 0)
        ret = sandboxes_new(adapter, &adapter->sandboxes);
    return ret;
}

static int dial_router(struct adapter *adapter, const char *url)
{
    const char *runtime_dir = snapshot_settings(adapter->snapshot)->router.runtime_dir;
    char standard[4096];

    (void)snprintf(standard, sizeof(standard), "ipc://%s/router.sock",
                   runtime_dir); /* a path that long would fail to connect anyhow */
    return serve_new(adapter, url ? url : standard, &adapter->serve);
}

static int adapter_begin(struct adapter *adapter, const struct adapter_options *options,
                         char *ret_error)
{
    struct settings *settings = NULL;
    int ret = watch_outside(adapter);

    if (ret == 0)
        ret = load_settings(settings_load, adapter->config_path, &settings, ret_error);
    if (ret < 0)
        return ret;
    adapter->snapshot = snapshot_new(settings);
    if (!adapter->snapshot)
        return -ENOMEM;
    log_odd_settings(snapshot_adapter(adapter->snapshot));
    ret = open_backend(adapter, ret_error);
    if (ret == 0)
        ret = make_tables(adapter);
    if (ret == 0)
        ret = dial_router(adapter, options->router_url);
    return ret;
}

int adapter_new(struct loop *loop, const struct adapter_options *options,
                struct adapter **ret_adapter, char ret_error[ADAPTER_ERROR_MAX])
{
    _cleanup_(adapter_freep)
    struct adapter *adapter = calloc(1, sizeof(*adapter));
    int ret = adapter ? 0 : -ENOMEM;

    *ret_error = '\0';
    if (ret == 0) {
        adapter->loop = loop;
        list_init(&adapter->image_calls);
        adapter->ops = options->ops;
        adapter->config_path = strdup(options->config_path);
        ret = adapter->config_path ? uuid_random(adapter->instance) : -ENOMEM;
    }
    if (ret == 0)
        ret = adapter_begin(adapter, options, ret_error);
    if (ret < 0) {
        if (!*ret_error)
            (void)snprintf(ret_error, ADAPTER_ERROR_MAX, "%s", strerror(-ret));
        return ret;
    }
    log_event(LOG_INFO, "adapter_started", log_text("name", adapter->name),
              log_text("config", adapter->config_path),
              log_text("instance", adapter->instance));
    *ret_adapter = take_ptr(adapter);
    return 0;
}

void adapter_free(struct adapter *adapter)
{
    if (!adapter)
        return;
    settings_watch_free(adapter->watch);
    loop_signal_free(adapter->terminate);
    loop_signal_free(adapter->interrupt);
    loop_timer_free(adapter->stop_timer);
    sandboxes_free(adapter->sandboxes);
    if (adapter->backend)
        adapter->ops->close(adapter->backend);
    adapter->fault = NULL;
    requests_free(adapter->requests);
    image_calls_drop(&adapter->image_calls);
    image_cache_free(adapter->images);
    idempotency_free(adapter->idempotency);
    channels_free(adapter->channels);
    router_calls_free(adapter->router_calls);
    serve_free(adapter->serve);
    snapshot_unref(adapter->snapshot);
    free(adapter->config_path);
    free(adapter->name);
    free(adapter);
}

/* Looking. */

struct loop *adapter_loop(const struct adapter *adapter)
{
    return adapter->loop;
}

const struct backend_ops *adapter_ops(const struct adapter *adapter)
{
    return adapter->ops;
}

struct backend *adapter_backend(const struct adapter *adapter)
{
    return adapter->backend;
}

struct snapshot *adapter_snapshot(const struct adapter *adapter)
{
    return adapter->snapshot;
}

const struct adapter_settings *adapter_settings(const struct adapter *adapter)
{
    return snapshot_adapter(adapter->snapshot);
}

struct image_cache *adapter_images(const struct adapter *adapter)
{
    return adapter->images;
}

struct list *adapter_image_calls(struct adapter *adapter)
{
    return &adapter->image_calls;
}

struct sandboxes *adapter_sandboxes(const struct adapter *adapter)
{
    return adapter->sandboxes;
}

struct idempotency *adapter_idempotency(const struct adapter *adapter)
{
    return adapter->idempotency;
}

struct channels *adapter_channels(const struct adapter *adapter)
{
    return adapter->channels;
}

struct router_calls *adapter_router_calls(const struct adapter *adapter)
{
    return adapter->router_calls;
}

struct requests *adapter_requests(const struct adapter *adapter)
{
    return adapter->requests;
}

struct serve *adapter_serve(const struct adapter *adapter)
{
    return adapter->serve;
}

const struct fault *adapter_fault(const struct adapter *adapter)
{
    return adapter->fault;
}

const char *adapter_name(const struct adapter *adapter)
{
    return adapter->name;
}

const char *adapter_instance(const struct adapter *adapter)
{
    return adapter->instance;
}

const char *adapter_docs_base(const struct adapter *adapter)
{
    return serve_docs_base(adapter->serve);
}

bool adapter_stopping(const struct adapter *adapter)
{
    return adapter->state != ADAPTER_SERVING;
}
