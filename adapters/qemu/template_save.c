/* template_save.c - from nothing to a saved machine: one that lies on disk, or boot, HELLO,
 * rehearsal, rest, stop, save, quit, seal. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent_frame.h"
#include "backend_state.h"
#include "log.h"
#include "scratch.h"
#include "template_state.h"
#include "vm.h"
#include "vm_state.h"

#define WORK_TIMEOUT_MS 60000u
#define STEP_TIMEOUT_MS 20000u
#define STATE_FD_NAME "state"

static void template_fail(struct template *template, const char *why)
{
    log_event(LOG_WARN, "template_failed", log_text("template", template->name),
              log_text("why", why));
    loop_timer_disarm(template->timer);
    boot_wait_cancel(&template->boot_wait);
    loop_io_free(take_ptr(template->agent_io));
    rehearsal_free(take_ptr(template->rehearsal));
    quiet_free(take_ptr(template->quiet));
    template_lookup_cancel(take_ptr(template->lookup));
    vm_free(take_ptr(template->vm));
    template_set_state(template, TEMPLATE_FAILED);
    template_tell(template);
}

void template_on_timer(void *ctx)
{
    template_fail(ctx, "it took too long");
}

/* Saving. */

static int template_seal(struct template *template)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

    if (fcntl(template->parts.memory_fd, F_ADD_SEALS, seals) < 0 ||
        fcntl(template->parts.state_fd, F_ADD_SEALS, seals) < 0)
        return -errno;
    return 0;
}

/* False: it has failed. */
static bool template_ready(struct template *template)
{
    int result = template_seal(template);

    if (result < 0) {
        template_fail(template, strerror(-result));
        return false;
    }
    loop_timer_disarm(template->timer);
    template_set_state(template, TEMPLATE_READY);
    template_tell(template);
    return true;
}

/* Its accelerator was given up; from a clean slate with the other one. */
static void template_begin_again(struct template *template)
{
    template_parts_done(&template->parts);
    template->parts = TEMPLATE_NO_PARTS;
    template->looked_up = false;
    template_set_state(template, TEMPLATE_PREPARING);
    template_begin(template);
}

static void on_gone(void *ctx, const char *reason, const char *console)
{
    struct template *template = ctx;
    const bool again = template->state == TEMPLATE_BOOTING && vm_may_retry(template->vm);

    vm_free(take_ptr(template->vm));
    if (again) {
        template_begin_again(template);
        return;
    }
    if (template->state != TEMPLATE_ENDING) {
        template_fail(template, reason);
        return;
    }
    if (template_ready(template))
        template_cache_keep(template->backend->template_cache, template->name, template->key,
                            &template->parts, template->backend->settings.template_cache_mb);
}

static void on_step(void *ctx, const json_t *value, const char *error)
{
    if (error)
        template_fail(ctx, error);
}

/* False: the template has failed. */
static bool template_execute(struct template *template, const char *command,
                             json_t *own_arguments, qmp_done_fn done)
{
    if (qmp_execute(vm_qmp(template->vm), command, own_arguments, STEP_TIMEOUT_MS, done,
                    template) == 0)
        return true;
    template_fail(template, "QEMU's monitor cannot be used");
    return false;
}

static void on_failure_told(void *ctx, const json_t *value, const char *error)
{
    const char *why = json_string_value(json_object_get(value, "error-desc"));

    template_fail(ctx, error ? error : why ? why : "QEMU cannot save its state");
}

static void on_migration(void *ctx, const char *status)
{
    struct template *template = ctx;

    if (template->state != TEMPLATE_SAVING)
        return;
    if (strcmp(status, "failed") == 0) {
        (void)template_execute(template, "query-migrate", NULL, on_failure_told);
    } else if (strcmp(status, "completed") == 0) {
        template_set_state(template, TEMPLATE_ENDING);
        vm_expect_end(template->vm);
        (void)vm_kill(template->vm, "saved"); /* its deadline tells when it cannot be ended */
    }
}

static bool template_pass_state_fd(struct template *template)
{
    if (qmp_execute_with_fd(vm_qmp(template->vm), "getfd",
                            json_pack("{s:s}", "fdname", STATE_FD_NAME),
                            template->parts.state_fd, STEP_TIMEOUT_MS, on_step, template) == 0)
        return true;
    template_fail(template, "QEMU's monitor cannot be used");
    return false;
}

/* QEMU answers in order, so all steps can be asked for at once. */
static void template_save(void *ctx)
{
    struct template *template = ctx;

    quiet_free(take_ptr(template->quiet));
    template_set_state(template, TEMPLATE_SAVING);
    vm_watch_migration(template->vm, on_migration);
    if (template_execute(template, "stop", NULL, on_step) &&
        template_execute(template, "migrate-set-capabilities", vm_migration_capabilities(),
                         on_step) &&
        template_pass_state_fd(template))
        (void)template_execute(template, "migrate",
                               json_pack("{s:s}", "uri", "fd:" STATE_FD_NAME),
                               on_step); /* a failure was told */
}

/* What its guest has begun and not ended, each of its clones would have to end. */
static void template_rest(struct template *template)
{
    int result = quiet_new(template->backend->loop, vm_pid(template->vm), template_save,
                           template, &template->quiet);

    if (result < 0)
        template_fail(template, strerror(-result));
    else
        template_set_state(template, TEMPLATE_RESTING);
}

/* Rehearsing. */

static void on_rehearsed(void *ctx, const char *error)
{
    struct template *template = ctx;

    rehearsal_free(take_ptr(template->rehearsal));
    if (error)
        template_fail(template, error);
    else
        template_rest(template);
}

static void template_rehearse(struct template *template)
{
    const struct backend *backend = template->backend;

    if (qemu_settings_warm_up(&backend->settings, &backend->accel) == WARM_UP_OFF) {
        template_rest(template);
        return;
    }
    template_set_state(template, TEMPLATE_REHEARSING);
    if (vm_say_hello(template->vm, template->parts.hello.data, template->parts.hello.size) <
            0 ||
        rehearsal_new(backend->loop, vm_agent_fd(template->vm), REHEARSAL_PROGRAMS,
                      on_rehearsed, template, &template->rehearsal) < 0)
        template_fail(template, "the guest cannot rehearse");
}

/* The agent's first frame must be its HELLO, with nothing behind it. -EAGAIN: not whole yet. */
static int template_take_hello(struct template *template)
{
    struct buf *hello = &template->parts.hello;
    uint8_t *room = buf_reserve(hello, 4096);
    struct agent_frame frame;
    const char *reason;
    ssize_t size = room ? recv(vm_agent_fd(template->vm), room, 4096, MSG_DONTWAIT) : -1;

    if (!room || size == 0)
        return -EPROTO;
    if (size < 0)
        return -errno;
    hello->size += (size_t)size;
    if (hello->size < AGENT_FRAME_PREFIX_BYTES ||
        hello->size - AGENT_FRAME_PREFIX_BYTES < agent_frame_size(hello->data))
        return -EAGAIN;
    if (hello->size - AGENT_FRAME_PREFIX_BYTES > agent_frame_size(hello->data) ||
        agent_frame_decode(hello->data + AGENT_FRAME_PREFIX_BYTES,
                           hello->size - AGENT_FRAME_PREFIX_BYTES, &frame, &reason) < 0 ||
        frame.kind != AGENT_FRAME_HELLO)
        return -EPROTO;
    return 0;
}

static void on_agent(void *ctx, uint32_t events)
{
    struct template *template = ctx;
    int result = template_take_hello(template);

    if (result == -EAGAIN || result == -EINTR)
        return;
    loop_io_free(take_ptr(template->agent_io));
    if (result < 0)
        template_fail(template, "the guest agent does not greet as it should");
    else
        template_rehearse(template);
}

static void on_up(void *ctx)
{
    struct template *template = ctx;

    if (loop_io_new(template->backend->loop, vm_agent_fd(template->vm), EPOLLIN, on_agent,
                    template, &template->agent_io) < 0)
        template_fail(template, strerror(ENOMEM));
}

/* Booting. */

static int template_prepare(struct template *template, const struct boot_file_set *files)
{
    const size_t bytes = (size_t) template->shape.memory_mb << 20;
    int result = scratch_copy(files->blank_fd, template->backend->scratch_directory,
                              &template->parts.disk_fd);

    if (result < 0)
        return result;
    template->parts.memory_fd = template_memory_new("sandbox-memory", bytes);
    template->parts.state_fd = template_memory_new("sandbox-state", 0);
    if (template->parts.memory_fd < 0)
        return template->parts.memory_fd;
    return template->parts.state_fd < 0 ? template->parts.state_fd : 0;
}

static void template_boot(struct template *template, const struct boot_file_set *files)
{
    static const struct vm_events events = { .up = on_up, .gone = on_gone };
    struct sandbox_error err = { 0 };
    int result = template_prepare(template, files);
    const struct vm_spec spec = {
        .name = template->name,
        .mode = QEMU_TEMPLATE,
        .shape = template->shape,
        .image_fd = template->image_fd,
        .disk_fd = template->parts.disk_fd,
        .kernel_fd = files->kernel_fd,
        .initrd_fd = files->initrd_fd,
        .memory_fd = template->parts.memory_fd,
        .state_fd = -1, /* passed when it is needed */
    };

    if (result < 0) {
        template_fail(template, strerror(-result));
        return;
    }
    template_set_state(template, TEMPLATE_BOOTING);
    if (vm_new(template->backend, &spec, &events, template, &template->vm, &err) < 0)
        template_fail(template, err.message);
    sandbox_error_done(&err);
}

/* Looking for one on disk. */

static void on_found(void *ctx, const char *key, struct template_parts *parts)
{
    struct template *template = ctx;

    template->lookup = NULL;
    template->looked_up = true;
    (void)snprintf(template->key, sizeof(template->key), "%s", key);
    if (parts) {
        template->parts = *parts;
        *parts = TEMPLATE_NO_PARTS;
        (void)template_ready(template);
    } else {
        template_set_state(template, TEMPLATE_PREPARING);
        template_boot_files_ready(template, NULL);
    }
}

/* False: that cannot be done, or is not wanted. */
static bool template_look_up(struct template *template, const struct boot_file_set *files)
{
    const struct backend *backend = template->backend;
    const struct qemu_settings *settings = &backend->settings;
    const bool bare = qemu_settings_warm_up(settings, &backend->accel) == WARM_UP_OFF;
    const struct template_key_spec spec = {
        .args = { .program = settings->program,
                  .mode = QEMU_TEMPLATE,
                  .shape = template->shape,
                  .accel = backend->accel,
                  .translation_mb = settings->translation_mb,
                  .command_line = settings->command_line },
        .image_digest = template->digest,
        .rehearsal = bare ? "none" : REHEARSAL_RECIPE,
        .kernel_fd = files->kernel_fd,
        .initrd_fd = files->initrd_fd,
    };

    if (settings->template_cache_mb == 0 ||
        template_cache_find(backend->template_cache, template->name, &spec,
                            backend->scratch_directory, on_found, template,
                            &template->lookup) < 0)
        return false;
    template_set_state(template, TEMPLATE_LOOKING);
    return true;
}

void template_boot_files_ready(void *ctx, const char *why)
{
    struct template *template = ctx;
    const struct boot_file_set *files;

    if (why) {
        template_fail(template, why);
        return;
    }
    files = boot_files_get(template->backend->boot_files, template->shape.disk_mb,
                           &template->boot_wait);
    if (files && (template->looked_up || !template_look_up(template, files)))
        template_boot(template, files);
}

void template_on_begin(void *ctx)
{
    template_boot_files_ready(ctx, NULL);
}

void template_begin(struct template *template)
{
    /* In a later turn, so that a failure does not answer from inside the call that began it. */
    loop_timer_arm(template->timer, WORK_TIMEOUT_MS);
    loop_defer(template->backend->loop, &template->begin);
}
