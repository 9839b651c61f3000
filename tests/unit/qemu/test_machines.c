/* test_machines.c - machines from start to end over a stand-in for QEMU: cold, templates, the
 * pool, and what happens when QEMU fails at each step. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_frame.h"
#include "backend_state.h"
#include "ops.h"
#include "template_state.h"
#include "turn.h"
#include "unit.h"
#include "vm_state.h"

/* One machine and what it told. */
struct seen {
    struct machine *machine;
    unsigned agents, gones;
    int fd;
    char reason[256];
    char console[256];
};

struct scene {
    struct loop *loop;
    struct backend *backend;
    struct settings *settings;
    struct image image;
    char folder[64];
};

static void on_agent(void *ctx, int own_fd, const struct machine_network *network)
{
    struct seen *seen = ctx;

    seen->agents++;
    seen->fd = own_fd;
    ck_assert_ptr_null(network);
}

static void on_gone(void *ctx, const char *reason, const char *console)
{
    struct seen *seen = ctx;

    seen->gones++;
    (void)snprintf(seen->reason, sizeof(seen->reason), "%s", reason);
    (void)snprintf(seen->console, sizeof(seen->console), "%s", console);
}

static const struct machine_events machine_events = { .agent = on_agent, .gone = on_gone };

static void write_file(const struct scene *scene, const char *name, const char *text)
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

static void begin(struct scene *scene, const char *behaviour, const char *more)
{
    char path[256], text[1024], error[SETTINGS_ERROR_MAX];
    struct sandbox_error err = { 0 };

    *scene = (struct scene){ 0 };
    make_folder(scene, behaviour);
    (void)snprintf(text, sizeof(text),
                   "sandbox:\n  adapter: sandbox-qemu\n  runtime_dir: %s/run\n  qemu:\n"
                   "    program: %s/q/bin/qemu-%s\n    acceleration: tcg\n"
                   "    kernel: %s/file\n    initrd: %s/file\n    agent: %s/file\n%s"
                   "  settings:\n    cache_dir: %s/cache\n    max_disk_mb: 64\n",
                   scene->folder, scene->folder, behaviour, scene->folder, scene->folder,
                   scene->folder, more, scene->folder);
    write_file(scene, "config.yaml", text);
    write_file(scene, "file", "");
    write_file(scene, IMAGE_FILE, "");
    (void)snprintf(path, sizeof(path), "%s/config.yaml", scene->folder);
    ck_assert_msg(settings_load(path, &scene->settings, error) == 0, "%s", error);
    ck_assert_int_eq(loop_new(&scene->loop), 0);
    ck_assert_msg(qemu_backend_ops.open(scene->loop, scene->settings, &scene->backend, &err) ==
                      0,
                  "%s", err.message);
    scene->image = (struct image){ .name = (char *)(uintptr_t) "image",
                                   .digest = (char *)(uintptr_t) "d1",
                                   .directory = scene->folder };
}

static void end(struct scene *scene)
{
    char command[256];

    qemu_backend_ops.close(scene->backend);
    settings_free(scene->settings);
    loop_free(scene->loop);
    (void)snprintf(command, sizeof(command), "rm -rf %s", scene->folder);
    ck_assert_int_eq(system(command), 0);
}

static void start(struct scene *scene, struct seen *seen)
{
    const struct machine_spec spec = { .id = "11111111-2222",
                                       .image = &scene->image,
                                       .cpus = 1,
                                       .memory_mb = 128,
                                       .disk_mb = 64,
                                       .boot_timeout_ms = 20000 };
    struct sandbox_error err = { 0 };

    *seen = (struct seen){ .fd = -1 };
    ck_assert_int_eq(qemu_backend_ops.machine_start(scene->backend, &spec, &machine_events,
                                                    seen, &seen->machine, &err),
                     0);
    ck_assert_uint_eq(seen->agents + seen->gones, 0); /* never from inside the call */
}

static void stop(struct scene *scene, struct seen *seen)
{
    struct sandbox_error err = { 0 };

    ck_assert_int_eq(qemu_backend_ops.machine_kill(seen->machine, &err), 0);
    ck_assert_uint_eq(seen->gones, 0);
    TURN_UNTIL(scene->loop, seen->gones == 1);
    qemu_backend_ops.machine_free(seen->machine);
    closep(&seen->fd);
}

/* The first thing that comes out of the agent's socket is HELLO, whole. */
static void check_hello(struct seen *seen)
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

static size_t vm_count(const struct scene *scene)
{
    size_t count = 0;

    LIST_FOREACH(node, &scene->backend->vms)
    count++;
    return count;
}

START_TEST(test_cold)
{
    struct scene scene;
    struct seen seen;

    begin(&scene, "fine", "    templates: false\n");
    start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    check_hello(&seen);
    stop(&scene, &seen);
    ck_assert_str_eq(seen.reason, "it was stopped");
    end(&scene);
}
END_TEST

START_TEST(test_crash)
{
    struct scene scene;
    struct seen seen;

    begin(&scene, "crash", "    templates: false\n");
    start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.gones == 1);
    ck_assert_uint_eq(seen.agents, 0);
    ck_assert_ptr_nonnull(strstr(seen.console, "fake: no such machine"));
    qemu_backend_ops.machine_free(seen.machine);
    end(&scene);
}
END_TEST

START_TEST(test_killed_from_outside)
{
    struct scene scene;
    struct seen seen;

    begin(&scene, "fine", "    templates: false\n");
    start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    ck_assert_int_eq(kill(LIST_ENTRY(scene.backend->vms.next, struct vm, node)->pid, SIGKILL),
                     0);
    TURN_UNTIL(scene.loop, seen.gones == 1);
    ck_assert_str_ne(seen.reason, "");
    qemu_backend_ops.machine_free(seen.machine);
    closep(&seen.fd);
    ck_assert_uint_eq(vm_count(&scene), 0);
    end(&scene);
}
END_TEST

START_TEST(test_killed_while_it_waits_or_boots)
{
    struct scene scene;
    struct seen waiting, booting;

    begin(&scene, "silent", "    templates: false\n");
    start(&scene, &waiting);
    stop(&scene, &waiting); /* before its first step */
    ck_assert_str_eq(waiting.reason, "it was stopped before it began");
    start(&scene, &booting);
    TURN_UNTIL(scene.loop, vm_count(&scene) == 1);
    turn_for(scene.loop, 50);
    ck_assert_uint_eq(booting.agents, 0);
    stop(&scene, &booting);
    ck_assert_str_eq(booting.reason, "it was stopped");
    end(&scene);
}
END_TEST

START_TEST(test_clones)
{
    struct scene scene;
    struct seen seen[3];

    begin(&scene, "fine", "    pool_size: 0\n");
    for (int i = 0; i < 3; i++)
        start(&scene, &seen[i]);
    for (int i = 0; i < 3; i++) {
        TURN_UNTIL(scene.loop, seen[i].agents == 1);
        check_hello(&seen[i]);
    }
    ck_assert_uint_eq(scene.backend->templates->count, 1); /* one for all */
    ck_assert_uint_eq(vm_count(&scene), 3);                /* and its own machine is gone */
    for (int i = 0; i < 3; i++)
        stop(&scene, &seen[i]);
    end(&scene);
}
END_TEST

START_TEST(test_template_is_sealed)
{
    struct scene scene;
    struct seen seen;
    struct template *template;
    int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    begin(&scene, "fine", "    pool_size: 0\n");
    start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    template = LIST_ENTRY(scene.backend->templates->all.next, struct template, node);
    ck_assert_int_eq(fcntl(template->memory_fd, F_GET_SEALS), seals);
    ck_assert_int_eq(fcntl(template->state_fd, F_GET_SEALS), seals);
    ck_assert_int_eq(pwrite(template->memory_fd, "x", 1, 0), -1);
    stop(&scene, &seen);
    end(&scene);
}
END_TEST

/* Whatever is wrong with templates, machines come up. */
START_TEST(test_cold_when_templates_fail)
{
    static const char *const behaviours[] = { "nosave", "noload" };

    for (size_t i = 0; i < ARRAY_SIZE(behaviours); i++) {
        struct scene scene;
        struct seen seen;

        begin(&scene, behaviours[i], "    pool_size: 0\n");
        start(&scene, &seen);
        TURN_UNTIL(scene.loop, seen.agents == 1);
        check_hello(&seen);
        ck_assert_int_eq(LIST_ENTRY(scene.backend->vms.next, struct vm, node)->mode, QEMU_COLD);
        stop(&scene, &seen);
        end(&scene);
    }
}
END_TEST

START_TEST(test_template_of_a_crash)
{
    struct scene scene;
    struct seen seen;

    begin(&scene, "crash", "");
    start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.gones == 1);
    ck_assert_ptr_nonnull(strstr(seen.console, "fake: no such machine"));
    qemu_backend_ops.machine_free(seen.machine);
    end(&scene);
}
END_TEST

/* Neither a QEMU that ends nor a guest that hangs under KVM keeps machines from coming up. */
START_TEST(test_kvm_is_given_up)
{
    static const struct {
        const char *behaviour;
        const char *more;
    } rows[] = {
        { "nokvm", "    templates: false\n" },
        { "nokvm", "    pool_size: 0\n" },
        { "kvmhang", "    templates: false\n" },
        { "kvmhang", "    pool_size: 0\n" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct scene scene;
        struct seen seen;

        begin(&scene, rows[i].behaviour, rows[i].more);
        scene.backend->accel = (struct accel){ .kind = ACCEL_KVM, .unproven = true };
        start(&scene, &seen);
        TURN_UNTIL(scene.loop, vm_count(&scene) == 1);
        if (strcmp(rows[i].behaviour, "kvmhang") == 0)
            vm_on_trial(LIST_ENTRY(scene.backend->vms.next, struct vm, node));
        TURN_UNTIL(scene.loop, seen.agents == 1);
        check_hello(&seen);
        ck_assert_int_eq(scene.backend->accel.kind, ACCEL_TCG);
        stop(&scene, &seen);
        end(&scene);
    }
}
END_TEST

/* One that has served is not doubted for a machine that does not come up, nor is one that was
 * asked for by name. */
START_TEST(test_kvm_is_kept)
{
    struct scene scene;
    struct seen seen;

    begin(&scene, "nokvm", "");
    scene.backend->accel = (struct accel){ .kind = ACCEL_KVM };
    start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.gones == 1);
    ck_assert_int_eq(scene.backend->accel.kind, ACCEL_KVM);
    qemu_backend_ops.machine_free(seen.machine);
    end(&scene);
}
END_TEST

START_TEST(test_kvm_proves_itself)
{
    struct scene scene;
    struct seen seen;

    begin(&scene, "fine", "");
    scene.backend->accel = (struct accel){ .kind = ACCEL_KVM, .unproven = true };
    start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    ck_assert_int_eq(scene.backend->accel.kind, ACCEL_KVM);
    ck_assert(!scene.backend->accel.unproven);
    stop(&scene, &seen);
    end(&scene);
}
END_TEST

static void fill_pool(struct scene *scene, struct seen *seen, size_t machines)
{
    start(scene, seen);
    TURN_UNTIL(scene->loop, seen->agents == 1);
    TURN_UNTIL(scene->loop, vm_count(scene) == machines);
    turn_for(scene->loop, 600); /* more would come now */
    ck_assert_uint_eq(vm_count(scene), machines);
}

START_TEST(test_pool)
{
    struct scene scene;
    struct seen first, second;
    uint64_t began_ms;

    begin(&scene, "fine", "    pool_size: 2\n");
    fill_pool(&scene, &first, 3);
    began_ms = loop_now_ms(scene.loop);
    start(&scene, &second);
    ck_assert_int_eq(loop_turn(scene.loop, 0), 0);
    ck_assert_int_eq(loop_turn(scene.loop, 0), 0);
    ck_assert_uint_eq(second.agents, 1); /* nothing had to be waited for */
    ck_assert_uint_lt(loop_now_ms(scene.loop) - began_ms, 1000);
    check_hello(&second);
    TURN_UNTIL(scene.loop, vm_count(&scene) == 4); /* the place is filled again */
    stop(&scene, &first);
    stop(&scene, &second);
    end(&scene);
}
END_TEST

START_TEST(test_pool_loses_a_machine)
{
    struct scene scene;
    struct seen seen;
    struct vm *last;

    begin(&scene, "fine", "    pool_size: 1\n");
    fill_pool(&scene, &seen, 2);
    last = LIST_ENTRY(scene.backend->vms.previous, struct vm, node);
    ck_assert_int_eq(kill(last->pid, SIGKILL), 0);
    TURN_UNTIL(scene.loop, vm_count(&scene) == 1);
    TURN_UNTIL(scene.loop, vm_count(&scene) == 2);
    stop(&scene, &seen);
    end(&scene);
}
END_TEST

START_TEST(test_pool_is_bounded_in_all)
{
    struct scene scene;
    struct seen seen[2];

    begin(&scene, "fine", "    pool_size: 2\n    max_pool_size: 2\n");
    fill_pool(&scene, &seen[0], 3);
    scene.image.digest = (char *)(uintptr_t) "d2"; /* takes over the places of d1 */
    fill_pool(&scene, &seen[1], 4);
    ck_assert_uint_eq(scene.backend->templates->count, 2);
    for (int i = 0; i < 2; i++)
        stop(&scene, &seen[i]);
    end(&scene);
}
END_TEST

START_TEST(test_templates_are_bounded)
{
    static const char *const digests[] = { "d1", "d2", "d3" };
    struct scene scene;
    struct seen seen;

    begin(&scene, "fine", "    pool_size: 1\n    max_templates: 2\n");
    for (size_t i = 0; i < ARRAY_SIZE(digests); i++) {
        scene.image.digest = (char *)(uintptr_t)digests[i];
        start(&scene, &seen);
        TURN_UNTIL(scene.loop, seen.agents == 1);
        stop(&scene, &seen);
    }
    ck_assert_uint_eq(scene.backend->templates->count, 2);
    ck_assert_str_eq(
        LIST_ENTRY(scene.backend->templates->all.next, struct template, node)->digest, "d2");
    end(&scene);
}
END_TEST

START_TEST(test_closing_kills_the_pool)
{
    struct scene scene;
    struct seen seen;
    pid_t pid;

    begin(&scene, "fine", "    pool_size: 1\n");
    fill_pool(&scene, &seen, 2);
    pid = LIST_ENTRY(scene.backend->vms.previous, struct vm, node)->pid;
    stop(&scene, &seen);
    end(&scene);
    ck_assert_int_eq(kill(pid, 0), -1);
}
END_TEST

UNIT_MAIN("qemu_machines", test_cold, test_crash, test_killed_from_outside,
          test_killed_while_it_waits_or_boots, test_clones, test_template_is_sealed,
          test_cold_when_templates_fail, test_template_of_a_crash, test_kvm_is_given_up,
          test_kvm_is_kept, test_kvm_proves_itself, test_pool, test_pool_loses_a_machine,
          test_pool_is_bounded_in_all, test_templates_are_bounded, test_closing_kills_the_pool)
