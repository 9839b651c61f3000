/* test_zygote.c - machines that begin as clones of a process: the same in all as others, and
 * whatever is wrong with the zygote, machines come up. */
#include "zygote.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "scene.h"
#include "turn.h"
#include "unit.h"
#include "vm_state.h"

static struct vm *only_vm(const struct scene *scene)
{
    ck_assert_uint_eq(scene_vm_count(scene), 1);
    return LIST_ENTRY(scene->backend->vms.next, struct vm, node);
}

static void await(struct scene *scene, enum zygote_state state)
{
    TURN_UNTIL(scene->loop, zygote_state(scene->backend->zygote) == state);
}

static void begin(struct scene *scene, const char *behaviour)
{
    scene_begin(scene, behaviour, "    pool_size: 0\n");
    await(scene, ZYGOTE_READY);
}

static void start(struct scene *scene, struct seen *seen)
{
    scene_start(scene, seen);
    TURN_UNTIL(scene->loop, seen->agents == 1);
    scene_check_hello(seen);
}

static bool status_has(pid_t pid, const char *line)
{
    char path[64];
    _cleanup_(buf_done)
    struct buf text = { 0 };

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    ck_assert_int_eq(file_read(path, 65536, &text), 0);
    return strstr(buf_text(&text), line) != NULL;
}

static void check_descriptors(pid_t pid)
{
    char path[64];
    DIR *folder;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const int fd = atoi(entry->d_name);

        ck_assert_msg(fd < QEMU_FD_NETWORK && fd != QEMU_FD_KERNEL && fd != QEMU_FD_INITRD,
                      "it has descriptor %d", fd);
    }
    (void)closedir(folder);
}

static bool same_namespace(pid_t pid, const char *name)
{
    char ours[64], theirs[64];
    struct stat a, b;

    (void)snprintf(ours, sizeof(ours), "/proc/self/ns/%s", name);
    (void)snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)pid, name);
    ck_assert_int_eq(stat(ours, &a), 0);
    ck_assert_int_eq(stat(theirs, &b), 0);
    return a.st_ino == b.st_ino;
}

/* A machine of the zygote's has what it would have got by an exec, and no more. */
START_TEST(test_confined)
{
    struct scene scene;
    struct seen seen;
    const struct vm *vm;
    char line[32];

    begin(&scene, "fine");
    start(&scene, &seen);
    vm = only_vm(&scene);
    ck_assert(vm->from_zygote);
    (void)snprintf(line, sizeof(line), "\nPPid:\t%d\n", (int)getpid());
    ck_assert(status_has(vm->pid, line)); /* our child, not the zygote's */
    ck_assert(status_has(vm->pid, "Name:\tqemu-fine\n"));
    ck_assert(status_has(zygote_pid(scene.backend->zygote), "Name:\tqemu-zygote\n"));
    ck_assert(status_has(vm->pid, "\nNoNewPrivs:\t1\n"));
    ck_assert(status_has(vm->pid, "\nCapEff:\t0000000000000000\n"));
    ck_assert(!status_has(vm->pid, "\nUid:\t0\t"));
    if (geteuid() == 0) {
        check_descriptors(vm->pid);
        if (scene.backend->confine.namespaces)
            ck_assert(!same_namespace(vm->pid, "net") && !same_namespace(vm->pid, "mnt"));
    }
    scene_stop(&scene, &seen);
    ck_assert_str_eq(seen.reason, "it was stopped");
    scene_end(&scene);
}
END_TEST

START_TEST(test_threads)
{
    struct scene scene;
    struct seen seen;

    begin(&scene, "threads");
    start(&scene, &seen);
    ck_assert(only_vm(&scene)->from_zygote);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

/* It may end at any time: machines go on, and the next but one is of another one. */
START_TEST(test_killed)
{
    struct scene scene;
    struct seen seen[3];

    begin(&scene, "fine");
    start(&scene, &seen[0]);
    ck_assert_int_eq(kill(zygote_pid(scene.backend->zygote), SIGKILL), 0);
    await(&scene, ZYGOTE_NONE);
    ck_assert_uint_eq(seen[0].gones, 0);
    start(&scene, &seen[1]);
    ck_assert(!LIST_ENTRY(scene.backend->vms.previous, struct vm, node)->from_zygote);
    await(&scene, ZYGOTE_READY);
    start(&scene, &seen[2]);
    ck_assert(LIST_ENTRY(scene.backend->vms.previous, struct vm, node)->from_zygote);
    for (int i = 0; i < 3; i++)
        scene_stop(&scene, &seen[i]);
    scene_end(&scene);
}
END_TEST

/* One that stands still is not waited for again. */
START_TEST(test_silent)
{
    struct scene scene;
    struct seen seen;
    pid_t pid;

    begin(&scene, "fine");
    pid = zygote_pid(scene.backend->zygote);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    start(&scene, &seen);
    ck_assert(!only_vm(&scene)->from_zygote);
    await(&scene, ZYGOTE_NONE);
    ck_assert_int_eq(kill(pid, 0), -1);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

/* QEMU was upgraded: what runs is not it any more. */
START_TEST(test_other_program)
{
    char command[512];
    struct scene scene;
    struct seen seen[2];
    pid_t pid;

    begin(&scene, "fine");
    pid = zygote_pid(scene.backend->zygote);
    (void)snprintf(command, sizeof(command),
                   "cd %s/q/bin && cp -p qemu-fine new && mv new qemu-fine", scene.folder);
    ck_assert_int_eq(system(command), 0);
    start(&scene, &seen[0]);
    ck_assert(!only_vm(&scene)->from_zygote);
    await(&scene, ZYGOTE_NONE);
    ck_assert_int_eq(kill(pid, 0), -1);
    start(&scene, &seen[1]);
    await(&scene, ZYGOTE_READY);
    for (int i = 0; i < 2; i++)
        scene_stop(&scene, &seen[i]);
    scene_end(&scene);
}
END_TEST

/* None of its machines ever came up. */
START_TEST(test_no_good)
{
    struct scene scene;
    struct seen seen;

    begin(&scene, "noload");
    start(&scene, &seen);
    ck_assert_int_eq(zygote_state(scene.backend->zygote), ZYGOTE_GIVEN_UP);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

START_TEST(test_script)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "script", "    pool_size: 0\n");
    await(&scene, ZYGOTE_GIVEN_UP);
    start(&scene, &seen);
    ck_assert_int_eq(only_vm(&scene)->mode, QEMU_CLONE);
    ck_assert(!only_vm(&scene)->from_zygote);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

START_TEST(test_gone_with_the_adapter)
{
    struct scene scene;
    pid_t pid;

    begin(&scene, "fine");
    pid = zygote_pid(scene.backend->zygote);
    ck_assert_int_gt(pid, 0);
    scene_end(&scene);
    ck_assert_int_eq(kill(pid, 0), -1);
    ck_assert_int_eq(errno, ESRCH);
}
END_TEST

UNIT_MAIN("qemu_zygote", test_confined, test_threads, test_killed, test_silent,
          test_other_program, test_no_good, test_script, test_gone_with_the_adapter)
