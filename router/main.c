/* main.c - sandbox-router: start-up order, reload, signals. The order of the end is
 * shutdown.c's.
 *
 * Start-up: settings, loop, signals (before any thread is there), the lock on the runtime
 * directory, the fronts, then the managed adapter, which dials the native one. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "front_native.h"
#include "front_web.h"
#include "memory.h"
#include "options.h"
#include "proc.h"
#include "ready.h"
#include "router_limits.h"
#include "runtime_dir.h"
#include "settings_watch.h"
#include "shutdown.h"
#include "supervise.h"
#include "web_limits.h"

#define EXIT_USAGE 2

/* Every connection that the limits allow, and what else is open: listeners, loops, adapters'
 * outputs. */
#define DESCRIPTORS_WANTED                                                                     \
    (NATIVE_CONNECTIONS_MAX + WEB_CONNECTIONS_MAX + WEB_REFUSED_MAX + 128u)

struct daemon {
    struct settings *settings;
    struct loop *loop;
    struct runtime_dir *directory;
    struct router router;
    struct front_native native;
    struct front_web *web;
    struct supervise *supervise;
    struct shutdown shutdown;
    struct memory memory;
    struct settings_watch *watch;
    struct ready ready;
    struct loop_signal *terminate;
    struct loop_signal *interrupt;
};

static int complain(const char *what)
{
    log_event(LOG_ERROR, "start_failed", log_text("why", what));
    return -1;
}

static int complain_errno(const char *step, int result)
{
    log_event(LOG_ERROR, "start_failed", log_text("step", step),
              log_text("why", strerror(-result)));
    return -1;
}

/* Reload. */

/* What a running router cannot change. */
static void warn_of_fixed_settings(const struct router_settings *old,
                                   const struct router_settings *new)
{
    if (strcmp(old->runtime_dir, new->runtime_dir) != 0)
        log_event(LOG_WARN, "setting_needs_restart", log_text("key", "sandbox.runtime_dir"));
    if (old->max_message_bytes != new->max_message_bytes)
        log_event(LOG_INFO, "setting_for_new_connections",
                  log_text("key", "sandbox.max_message_bytes"));
}

/* Bad settings: the old ones stay, wholly. */
static void on_settings_changed(void *ctx)
{
    struct daemon *daemon = ctx;
    char error[SETTINGS_ERROR_MAX];
    struct settings *old = daemon->settings;
    struct settings *new;
    int result = settings_reload(old->path, &new, error);

    if (result < 0) {
        log_event(result == -ENODATA ? LOG_WARN : LOG_ERROR, "reload_failed",
                  log_text("why", error), log_text("effect", "the old settings stay"));
        return;
    }
    warn_of_fixed_settings(&old->router, &new->router);
    daemon->settings = new;
    router_reload(&daemon->router, new);
    front_native_reload(&daemon->native);
    front_web_reload(daemon->web);
    supervise_apply(daemon->supervise);
    settings_free(old);
    log_event(LOG_INFO, "reloaded", log_text("path", new->path));
}

static void on_terminate(void *ctx, int signal_number)
{
    struct daemon *daemon = ctx;

    shutdown_begin(&daemon->shutdown);
}

/* Start-up. */

/* The usual limit of a process is less than our own limits allow. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS_WANTED)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS_WANTED ? limit.rlim_max : DESCRIPTORS_WANTED;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* the line below tells what holds */
    if (limit.rlim_cur < DESCRIPTORS_WANTED)
        log_event(LOG_WARN, "few_descriptors", log_uint("limit", limit.rlim_cur),
                  log_uint("wanted", DESCRIPTORS_WANTED),
                  log_text("effect", "connections beyond it wait until others end"));
}

static int open_loop(struct daemon *daemon)
{
    int result = loop_new(&daemon->loop);

    if (result == 0)
        result = loop_signal_new(daemon->loop, SIGTERM, on_terminate, daemon,
                                 &daemon->terminate);
    if (result == 0)
        result = loop_signal_new(daemon->loop, SIGINT, on_terminate, daemon,
                                 &daemon->interrupt);
    if (result == 0)
        result = settings_watch_new(daemon->loop, daemon->settings->path, on_settings_changed,
                                    daemon, &daemon->watch);
    return result == 0 ? 0 : complain_errno("loop", result);
}

static int open_fronts(struct daemon *daemon)
{
    static const struct link_timing by_limits;
    char error[FRONT_NATIVE_ERROR_MAX];
    char web_error[FRONT_WEB_ERROR_MAX];
    char directory_error[RUNTIME_DIR_ERROR_MAX];

    if (runtime_dir_open(daemon->settings->router.runtime_dir, &daemon->directory,
                         directory_error) < 0)
        return complain(directory_error);
    if (front_native_open(&daemon->native, &daemon->router, runtime_dir_url(daemon->directory),
                          &by_limits, error) < 0)
        return complain(error);
    if (front_web_new(&daemon->router, &daemon->web, web_error) < 0)
        return complain(web_error);
    return 0;
}

static int open_supervise(struct daemon *daemon)
{
    static const struct supervise_timing by_limits;
    int result = supervise_new(&daemon->router, runtime_dir_url(daemon->directory), &by_limits,
                               &daemon->supervise);

    if (result == 0)
        result = shutdown_init(&daemon->shutdown, &daemon->router, &daemon->native, daemon->web,
                               daemon->supervise);
    if (result < 0)
        return complain_errno("supervise", result);
    supervise_apply(daemon->supervise);
    return 0;
}

static int daemon_start(struct daemon *daemon)
{
    int result = open_loop(daemon);

    if (result < 0)
        return result;
    result = router_init(&daemon->router, daemon->loop, daemon->settings);
    if (result == 0)
        result = memory_init(&daemon->memory, &daemon->router);
    if (result < 0)
        return complain_errno("router", result);
    daemon->router.binding.changed = ready_binding_changed;
    daemon->router.binding.changed_ctx = &daemon->ready;
    result = open_fronts(daemon);
    return result == 0 ? open_supervise(daemon) : result;
}

/* Also of what was only begun. */
static void daemon_stop(struct daemon *daemon)
{
    supervise_free(daemon->supervise);
    shutdown_done(&daemon->shutdown);
    memory_done(&daemon->memory);
    front_web_free(daemon->web);
    if (daemon->native.router)
        front_native_done(&daemon->native);
    if (daemon->router.loop)
        router_done(&daemon->router);
    runtime_dir_close(daemon->directory);
    settings_watch_free(daemon->watch);
    loop_signal_free(daemon->interrupt);
    loop_signal_free(daemon->terminate);
    loop_free(daemon->loop);
    settings_free(daemon->settings);
    ready_close(&daemon->ready);
}

static int run(const struct options *options)
{
    struct daemon daemon = { .ready.fd = -1 };
    char error[SETTINGS_ERROR_MAX];
    int result = EXIT_FAILURE;

    if (options->ready_fd >= 0 && ready_open(&daemon.ready, options->ready_fd) < 0) {
        (void)snprintf(error, sizeof(error),
                       "--ready-fd %d is no descriptor that is open for writing",
                       options->ready_fd);
        (void)complain(error);
        return EXIT_FAILURE;
    }
    if (settings_load(options->config, &daemon.settings, error) < 0) {
        (void)complain(error);
        return EXIT_FAILURE;
    }
    if (daemon_start(&daemon) == 0) {
        log_event(LOG_INFO, "started", log_text("version", SANDBOX_VERSION),
                  log_text("config", daemon.settings->path));
        ready_listening(&daemon.ready, front_web_port(daemon.web, 0));
        result = loop_run(daemon.loop);
    }
    daemon_stop(&daemon);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct options options;

    if (proc_hold_standard_fds() < 0)
        return EXIT_FAILURE; /* there may be nowhere to say it */
    switch (options_parse(argc, argv, &options)) {
    case OPTIONS_DONE:
        return EXIT_SUCCESS;
    case OPTIONS_WRONG:
        return EXIT_USAGE;
    default:
        break;
    }
    log_init("sandbox-router", options.log_format, options.log_level);
    memory_tune();
    raise_descriptor_limit();
    raise_descriptor_limit();
    (void)signal(SIGPIPE, SIG_IGN); /* of a writer that is gone we hear by EPIPE */
    return run(&options);
}
