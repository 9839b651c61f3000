/* scene.c - see scene.h. */
#include "scene.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_frame.h"
#include "ops.h"
#include "template.h"
#include "turn.h"

static void on_agent(void *ctx, int own_fd, int own_mailbox_fd,
                     const struct machine_network *network)
{
    struct seen *seen = ctx;

    seen->agents++;
    seen->fd = own_fd;
    ck_assert_ptr_null(network);
    if (!seen->hangs)
        qemu_backend_ops.machine_ready(seen->machine);
}

static void on_gone(void *ctx, const char *reason, const char *console)
{
    struct seen *seen = ctx;

    seen->gones++;
    (void)snprintf(seen->reason, sizeof(seen->reason), "%s", reason);
    (void)snprintf(seen->console, sizeof(seen->console), "%s", console);
}

static void on_settle(void *ctx)
{
    struct seen *seen = ctx;

    seen->settles++;
    if (!seen->hangs)
        qemu_backend_ops.machine_settled(seen->machine);
}

static const struct machine_events machine_events = { .agent = on_agent,
                                                      .settle = on_settle,
                                                      .gone = on_gone };

void scene_write_file(const struct scene *scene, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* A folder with a copy of the stand-in under the name that tells it what to do. */
static void make_folder(struct scene *scene, const char *behaviour)
{
    char command[1024];

    strcpy(scene->folder, "/tmp/test-machines-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scene->folder));
    (void)snprintf(command, sizeof(command),
                   "chmod 0755 %s && mkdir -p %s/q/bin %s/cache/boot && cp %s %s/q/bin/qemu-%s",
                   scene->folder, scene->folder, scene->folder, FAKE_QEMU, scene->folder,
                   behaviour);
    ck_assert_int_eq(system(command), 0);
}

/* QEMU is a shell script that starts the stand-in. */
static void make_script(const struct scene *scene)
{
    char command[512];

    (void)snprintf(
        command, sizeof(command),
        "cd %s/q/bin && mv qemu-script real-fine && "
        "printf '#!/bin/sh\n%%s\n' 'exec \"${0%%/*}/real-fine\" \"$@\"' >qemu-script && "
        "chmod 0755 qemu-script",
        scene->folder);
    ck_assert_int_eq(system(command), 0);
}

static void scene_open(struct scene *scene)
{
    char path[256], error[SETTINGS_ERROR_MAX];
    struct sandbox_error err = { 0 };

    (void)snprintf(path, sizeof(path), "%s/config.yaml", scene->folder);
    ck_assert_msg(settings_load(path, &scene->settings, error) == 0, "%s", error);
    ck_assert_int_eq(loop_new(&scene->loop), 0);
    ck_assert_msg(qemu_backend_ops.open(scene->loop, scene->settings, &scene->backend, &err) ==
                      0,
                  "%s", err.message);
}

static void scene_close(struct scene *scene)
{
    qemu_backend_ops.close(scene->backend);
    settings_free(scene->settings);
    loop_free(scene->loop);
}

void scene_restart(struct scene *scene)
{
    scene_close(scene);
    scene_open(scene);
}

void scene_begin(struct scene *scene, const char *behaviour, const char *more)
{
    char text[1024];

    *scene = (struct scene){ 0 };
    make_folder(scene, behaviour);
    if (strcmp(behaviour, "script") == 0)
        make_script(scene);
    (void)snprintf(text, sizeof(text),
                   "sandbox:\n  adapter: sandbox-qemu\n  runtime_dir: %s/run\n  qemu:\n"
                   "    program: %s/q/bin/qemu-%s\n    acceleration: tcg\n"
                   "    kernel: %s/file\n    initrd: %s/file\n    agent: %s/file\n%s"
                   "  settings:\n    cache_dir: %s/cache\n    max_disk_mb: 64\n",
                   scene->folder, scene->folder, behaviour, scene->folder, scene->folder,
                   scene->folder, more, scene->folder);
    scene_write_file(scene, "config.yaml", text);
    scene_write_file(scene, "file", "");
    scene_write_file(scene, IMAGE_FILE, "");
    scene_open(scene);
    scene->image = (struct image){ .name = (char *)(uintptr_t) "image",
                                   .content = (char *)(uintptr_t) "d1",
                                   .directory = scene->folder };
}

void scene_end(struct scene *scene)
{
    char command[256];

    scene_close(scene);
    (void)snprintf(command, sizeof(command), "rm -rf %s", scene->folder);
    ck_assert_int_eq(system(command), 0);
}

void scene_start(struct scene *scene, struct seen *seen)
{
    const struct machine_spec spec = { .id = "11111111-2222",
                                       .image = &scene->image,
                                       .cpus = 1,
                                       .memory_mb = 128,
                                       .disk_mb = 64,
                                       .boot_timeout_ms = 20000 };
    struct sandbox_error err = { 0 };

    *seen = (struct seen){ .fd = -1, .hangs = scene->guests_hang };
    ck_assert_int_eq(qemu_backend_ops.machine_start(scene->backend, &spec, &machine_events,
                                                    seen, &seen->machine, &err),
                     0);
    ck_assert_uint_eq(seen->agents + seen->gones, 0); /* never from inside the call */
}

void scene_stop(struct scene *scene, struct seen *seen)
{
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(qemu_backend_ops.machine_kill(seen->machine, &err), 0);
    ck_assert_uint_eq(seen->gones, 0);
    TURN_UNTIL(scene->loop, seen->gones == 1);
    qemu_backend_ops.machine_free(seen->machine);
    closep(&seen->fd);
}

/* The first thing that comes out of the agent's socket is HELLO, whole. */
void scene_check_hello(struct seen *seen)
{
    uint8_t bytes[256];
    struct agent_frame frame;
    const char *reason;
    ssize_t size = recv(seen->fd, bytes, sizeof(bytes), 0);

    ck_assert_int_gt(size, AGENT_FRAME_PREFIX_BYTES);
    ck_assert_int_eq(agent_frame_decode(bytes + AGENT_FRAME_PREFIX_BYTES,
                                        (size_t)size - AGENT_FRAME_PREFIX_BYTES, &frame,
                                        &reason),
                     0);
    ck_assert_int_eq(frame.kind, AGENT_FRAME_HELLO);
}

size_t scene_vm_count(const struct scene *scene)
{
    size_t count = 0;

    LIST_FOREACH(node, &scene->backend->vms)
    count++;
    return count;
}
