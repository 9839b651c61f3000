/* mock.c - see mock.h. */
#include "mock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"

#define INSTALLER "mock-image-install"

/* The section sandbox.mock. */
struct mock_settings {
    char *agent;
    char *bwrap;
    struct text_list faults;
};

static const struct setting_row rows[] = {
    { .name = "agent",
      .kind = SETTING_PATH,
      .standard = "",
      .offset = offsetof(struct mock_settings, agent),
      .text = "the guest agent's program; default: beside our own" },
    { .name = "bwrap",
      .kind = SETTING_TEXT,
      .standard = "",
      .max = 4095,
      .offset = offsetof(struct mock_settings, bwrap),
      .text = "bubblewrap's program; default: bwrap on PATH" },
    { .name = "faults",
      .kind = SETTING_TEXTS,
      .standard = "",
      .offset = offsetof(struct mock_settings, faults),
      .text = "faults from the start, each a JSON object as of sandbox-mock::fault" },
};

/* The program in our own folder, in the one beside it where packages put it, or in the source
 * tree. NULL: none. */
static char *installer_find(void)
{
    static const char *const places[] = {
        "%s/" INSTALLER,
        "%s/../libexec/iii-sandbox/" INSTALLER,
    };
    const char *folder = proc_self_directory();

    for (size_t i = 0; folder && i < ARRAY_SIZE(places); i++) {
        char *path;

        if (asprintf(&path, places[i], folder) < 0)
            return NULL;
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

static int add_faults(struct backend *backend, const struct text_list *faults,
                      struct sandbox_error *err)
{
    for (size_t i = 0; i < faults->count; i++) {
        if (mock_faults_add(backend, faults->items[i], strlen(faults->items[i]), err) < 0)
            return -1;
    }
    return 0;
}

static int open_with(struct backend *backend, const struct settings *settings,
                     const struct mock_settings *own, struct sandbox_error *err)
{
    int result = mock_faults_init(backend);

    if (result < 0)
        return sandbox_error_set(err, S300, "faults: %s", strerror(-result));
    backend->installer = installer_find();
    if (!backend->installer)
        return sandbox_error_set(err, S300, "%s is not installed", INSTALLER);
    if (launcher_init(&backend->launcher, own->bwrap, own->agent, settings->router.runtime_dir,
                      err) < 0)
        return -1;
    return add_faults(backend, &own->faults, err);
}

static void mock_close(struct backend *backend)
{
    if (!backend)
        return;
    workers_free(backend->workers);
    mock_faults_done(backend);
    launcher_done(&backend->launcher);
    free(backend->installer);
    free(backend);
}

/* What a worker writes lasts only where folders can be put over each other, which is root's. */
static const char *mock_features[] = { "fault", NULL, NULL };

static int mock_open(struct loop *loop, const struct settings *settings,
                     struct backend **ret_backend, struct sandbox_error *err)
{
    struct backend *backend = calloc(1, sizeof(*backend));
    char why[SETTINGS_ERROR_MAX];
    struct mock_settings own;
    int result;

    if (!backend)
        return sandbox_error_set(err, S300, "no memory");
    backend->loop = loop;
    mock_features[1] = geteuid() == 0 ? "worker" : NULL;
    list_init(&backend->machines);
    list_init(&backend->held);
    script_init(&backend->script);
    if (settings_read(settings->mock, "sandbox.mock", rows, ARRAY_SIZE(rows), &own, why) < 0) {
        mock_close(backend);
        return sandbox_error_set(err, S300, "%s:%s", settings->path, why);
    }
    result = open_with(backend, settings, &own, err);
    settings_release(rows, ARRAY_SIZE(rows), &own);
    if (result < 0) {
        mock_close(backend);
        return -1;
    }
    *ret_backend = backend;
    return 0;
}

/* What the section says holds from the start of the process. */
static void mock_reload(struct backend *backend, const struct settings *settings)
{
}

static void mock_info(const struct backend *backend, struct backend_info *ret_info)
{
    *ret_info = (struct backend_info){ .name = "sandbox-mock", .version = SANDBOX_VERSION };
}

static const char *mock_installer(const struct backend *backend)
{
    return backend->installer;
}

static const char *mock_image_flavor(const struct backend *backend)
{
    return "mock-1";
}

static bool mock_own_operation(struct backend *backend, const char *operation,
                               struct request *request)
{
    if (workers_serve(&backend->workers, WORKERS_FOLDER, operation, request))
        return true;
    if (strcmp(operation, "fault") != 0)
        return false;
    mock_faults_serve(backend, request);
    return true;
}

static void mock_stop(struct backend *backend, void (*done)(void *ctx), void *ctx)
{
    workers_stop_all(backend->workers, done, ctx);
}

static const struct fault *mock_fault(struct backend *backend)
{
    return &backend->hooks;
}

const struct backend_ops mock_ops = {
    .open = mock_open,
    .reload = mock_reload,
    .close = mock_close,
    .info = mock_info,
    .installer = mock_installer,
    .image_flavor = mock_image_flavor,
    .machine_start = mock_machine_start,
    .machine_kill = mock_machine_kill,
    .machine_last_payload = mock_machine_last_payload,
    .machine_free = mock_machine_free,
    .own_operation = mock_own_operation,
    .stop = mock_stop,
    .features = mock_features,
    .fault = mock_fault,
};
