/* template_save.c - from nothing to a saved machine: boot, HELLO, stop, save, quit, seal. */
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

    if (fcntl(template->memory_fd, F_ADD_SEALS, seals) < 0 ||
        fcntl(template->state_fd, F_ADD_SEALS, seals) < 0)
        return -errno;
    return 0;
}

/* Its accelerator was given up; from a clean slate with the other one. */
static void template_begin_again(struct template *template)
{
    closep(&template->disk_fd);
    closep(&template->memory_fd);
    closep(&template->state_fd);
    template_set_state(template, TEMPLATE_PREPARING);
    template_begin(template);
}

static void on_gone(void *ctx, const char *reason, const char *console)
{
    struct template *template = ctx;
    const bool again = template->state == TEMPLATE_BOOTING && vm_may_retry(template->vm);
    int result;

    vm_free(take_ptr(template->vm));
    if (again) {
        template_begin_again(template);
        return;
    }
    if (template->state != TEMPLATE_ENDING) {
        template_fail(template, reason);
        return;
    }
    result = template_seal(template);
    if (result < 0) {
        template_fail(template, strerror(-result));
        return;
    }
    loop_timer_disarm(template->timer);
    template_set_state(template, TEMPLATE_READY);
    template_tell(template);
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
                            json_pack("{s:s}", "fdname", STATE_FD_NAME), template->state_fd,
                            STEP_TIMEOUT_MS, on_step, template) == 0)
        return true;
    template_fail(template, "QEMU's monitor cannot be used");
    return false;
}

/* QEMU answers in order, so all steps can be asked for at once. */
static void template_save(struct template *template)
{
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

/* The agent's first frame must be its HELLO, with nothing behind it. -EAGAIN: not whole yet. */
static int template_take_hello(struct template *template)
{
    struct buf *hello = &template->hello;
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
        template_save(template);
}

static void on_up(void *ctx)
{
    struct template *template = ctx;

    if (loop_io_new(template->backend->loop, vm_agent_fd(template->vm), EPOLLIN, on_agent,
                    template, &template->agent_io) < 0)
        template_fail(template, strerror(ENOMEM));
}

/* Booting. */

static int make_memory(const char *name, size_t size)
{
    _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || (size > 0 && ftruncate(fd, (off_t)size) < 0))
        return -errno;
    return take_fd(&fd);
}

static int template_prepare(struct template *template, const struct boot_file_set *files)
{
    const size_t bytes = (size_t) template->shape.memory_mb << 20;
    int result = scratch_copy(files->blank_fd, template->backend->scratch_directory,
                              &template->disk_fd);

    if (result < 0)
        return result;
    template->memory_fd = make_memory("sandbox-memory", bytes);
    template->state_fd = make_memory("sandbox-state", 0);
    if (template->memory_fd < 0)
        return template->memory_fd;
    return template->state_fd < 0 ? template->state_fd : 0;
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
        .disk_fd = template->disk_fd,
        .kernel_fd = files->kernel_fd,
        .initrd_fd = files->initrd_fd,
        .memory_fd = template->memory_fd,
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
    if (files)
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
