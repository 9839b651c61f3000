/* ops.c - see ops.h: birth, reload and death of the back end; the rest are machines.
 *
 * Nothing is left over from an adapter that was killed: its machines die with it, their disks
 * and memory have no names. */
#include "ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_state.h"
#include "libexec.h"
#include "log.h"
#include "network.h"
#include "template_cache.h"
#include "vm_state.h"
#include "workers.h"
#include "zygote.h"

#define NAME "sandbox-qemu"
#define INSTALLER "image-install"

static void backend_free(struct backend *backend)
{
    if (!backend)
        return;
    workers_free(backend->workers);
    pool_free(backend->pool);
    templates_free(backend->templates);
    template_cache_free(backend->template_cache);
    vms_end(&backend->vms);
    zygote_free(backend->zygote);
    networks_end(&backend->networks);
    start_queue_done(&backend->starts);
    boot_files_free(backend->boot_files);
    confine_done(&backend->confine);
    qemu_settings_done(&backend->settings);
    free(backend->installer);
    free(backend->scratch_directory);
    free(backend);
}
DEFINE_CLEANUP(struct backend *, backend_free)

static int make_scratch_directory(struct backend *backend, const char *cache_directory)
{
    if (asprintf(&backend->scratch_directory, "%s/scratch", cache_directory) < 0) {
        backend->scratch_directory = NULL;
        return -ENOMEM;
    }
    if (mkdir(backend->scratch_directory, 0700) < 0 && errno != EEXIST)
        return -errno;
    return 0;
}

static int backend_parts(struct backend *backend, const struct settings *settings,
                         struct sandbox_error *err)
{
    const char *cache_directory = settings->adapter.cache_dir;
    int result = make_scratch_directory(backend, cache_directory);

    backend->installer = libexec_find(INSTALLER);
    if (!backend->installer)
        return sandbox_error_set(err, S300, "the helper " INSTALLER " is not installed");
    if (result == 0)
        result = start_queue_init(&backend->starts, backend->loop, start_queue_limit());
    if (result == 0)
        result = boot_files_new(backend->loop, cache_directory, &backend->settings,
                                &backend->boot_files);
    if (result == 0)
        result = template_cache_new(backend->loop, cache_directory, &backend->template_cache);
    if (result == 0)
        result = templates_new(backend, &backend->templates);
    if (result == 0)
        result = pool_new(backend, &backend->pool);
    if (result == 0)
        result = zygote_new(backend->loop, &backend->settings, &backend->zygote);
    return result < 0
               ? sandbox_error_set(err, S300, "%s: %s", cache_directory, strerror(-result))
               : 0;
}

static int qemu_open(struct loop *loop, const struct settings *settings,
                     struct backend **ret_backend, struct sandbox_error *err)
{
    _cleanup_(backend_freep)
    struct backend *backend = calloc(1, sizeof(*backend));

    if (!backend)
        return sandbox_error_set(err, S300, "out of memory");
    backend->loop = loop;
    list_init(&backend->vms);
    list_init(&backend->networks);
    if (qemu_settings_read(settings, &backend->settings, err) < 0 ||
        accel_choose(backend->settings.acceleration, geteuid() != 0, &backend->accel, err) <
            0 ||
        confine_init(&backend->confine,
                     &(struct confine_options){ .user = backend->settings.user,
                                                .program = backend->settings.program,
                                                .extra_group = backend->accel.kvm_group },
                     err) < 0 ||
        backend_parts(backend, settings, err) < 0)
        return -1;
    log_event(LOG_INFO, "backend_open", log_text("acceleration", accel_name(&backend->accel)),
              log_uint("tsc_khz", backend->accel.tsc_khz),
              log_uint("landlock", backend->confine.landlock));
    /* Fetched while nobody waits yet. */
    (void)boot_files_get(backend->boot_files, settings->adapter.max_disk_mb, NULL);
    *ret_backend = take_ptr(backend);
    return 0;
}

static bool same_numbers(const struct setting_numbers *a, const struct setting_numbers *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++)
        same = a->items[i] == b->items[i];
    return same;
}

/* Machines of the pool have their network already, by the old rules: they are made anew. */
static void reload_network(struct backend *backend, struct qemu_settings *fresh)
{
    struct qemu_settings *settings = &backend->settings;
    struct setting_numbers old_ports = settings->host_ports;

    if (settings->allow_private_networks == fresh->allow_private_networks &&
        same_numbers(&settings->host_ports, &fresh->host_ports))
        return;
    settings->allow_private_networks = fresh->allow_private_networks;
    settings->host_ports = fresh->host_ports;
    fresh->host_ports = old_ports; /* freed with it */
    pool_empty(backend->pool);
}

/* What is decided at the start stays: QEMU, user, acceleration, boot files. */
static void qemu_reload(struct backend *backend, const struct settings *settings)
{
    struct qemu_settings fresh;
    struct sandbox_error err = { 0 };

    if (qemu_settings_read(settings, &fresh, &err) < 0) {
        log_event(LOG_ERROR, "settings_kept", log_text("error", err.message));
        sandbox_error_done(&err);
        return;
    }
    backend->settings.templates = fresh.templates;
    free(backend->settings.warm_up);
    backend->settings.warm_up = take_ptr(fresh.warm_up);
    backend->settings.template_cache_mb = fresh.template_cache_mb;
    reload_network(backend, &fresh);
    backend->settings.max_templates = fresh.max_templates;
    backend->settings.pool_size = fresh.pool_size;
    backend->settings.max_pool_size = fresh.max_pool_size;
    backend->settings.pool_memory_mb = fresh.pool_memory_mb;
    backend->settings.pool_cpu_percent = fresh.pool_cpu_percent;
    qemu_settings_done(&fresh);
    pool_resize(backend->pool);
}

static void qemu_info(const struct backend *backend, struct backend_info *ret_info)
{
    *ret_info = (struct backend_info){
        .name = NAME,
        .version = SANDBOX_VERSION,
        .acceleration = accel_name(&backend->accel),
        .isolation = accel_isolation(&backend->accel),
    };
}

static const char *qemu_installer(const struct backend *backend)
{
    return backend->installer;
}

static const char *qemu_image_flavor(const struct backend *backend)
{
    return "erofs-1"; /* root.erofs of image-install; another layout, another number */
}

static const char *qemu_scratch_directory(const struct backend *backend)
{
    return backend->scratch_directory;
}

static bool qemu_own_operation(struct backend *backend, const char *operation,
                               struct request *request)
{
    return workers_serve(&backend->workers, WORKERS_DISK, operation, request);
}

static void qemu_stop(struct backend *backend, void (*done)(void *ctx), void *ctx)
{
    workers_stop_all(backend->workers, done, ctx);
}

static const char *const features[] = { "worker", "network_activity", NULL };

const struct backend_ops qemu_backend_ops = {
    .open = qemu_open,
    .reload = qemu_reload,
    .close = backend_free,
    .info = qemu_info,
    .installer = qemu_installer,
    .image_flavor = qemu_image_flavor,
    .machine_start = machine_start,
    .machine_kill = machine_kill,
    .machine_ready = machine_ready,
    .machine_settled = machine_settled,
    .machine_wanted = machine_wanted,
    .machine_last_payload = machine_last_payload,
    .scratch_directory = qemu_scratch_directory,
    .machine_disk_bytes = machine_disk_bytes,
    .machine_free = machine_free,
    .own_operation = qemu_own_operation,
    .stop = qemu_stop,
    .features = features,
};
