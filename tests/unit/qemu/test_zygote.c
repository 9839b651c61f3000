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
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "ops.h"
#include "scene.h"
#include "turn.h"
#include "unit.h"
#include "vm_state.h"

/* Each test has a process of its own. */
static struct scene scene;
static struct seen seen[3];

/* The machine that was begun last. */
static struct vm *last_vm(void)
{
    ck_assert(!list_empty(&scene.backend->vms));
    return LIST_ENTRY(scene.backend->vms.previous, struct vm, node);
}

static pid_t the_zygote(void)
{
    return zygote_pid(scene.backend->zygote);
}

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH; /* reaped, too */
}

static void await(enum zygote_state state)
{
    TURN_UNTIL(scene.loop, zygote_state(scene.backend->zygote) == state);
}

static void begin(const char *behaviour)
{
    scene_begin(&scene, behaviour, "    pool_size: 0\n");
    scene.backend->starts.limit = ARRAY_SIZE(seen);
    await(ZYGOTE_READY);
}

static void await_up(int number)
{
    TURN_UNTIL(scene.loop, seen[number].agents == 1);
    scene_check_hello(&seen[number]);
}

static struct vm *start(int number)
{
    scene_start(&scene, &seen[number]);
    await_up(number);
    return last_vm();
}

/* Until the zygote was asked for its machine. */
static struct vm *ask(int number)
{
    const size_t count = scene_vm_count(&scene);

    scene_start(&scene, &seen[number]);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) > count && last_vm()->state == VM_LAUNCHING);
    return last_vm();
}

/* COUNT machines run. */
static void end(int count)
{
    for (int i = 0; i < count; i++)
        scene_stop(&scene, &seen[i]);
    scene_end(&scene);
}

/* PID, or any child; it stands still afterwards. */
static pid_t await_stop(pid_t pid)
{
    siginfo_t info = { 0 };

    ck_assert_int_eq(waitid(pid ? P_PID : P_ALL, (id_t)pid, &info, WSTOPPED), 0);
    return info.si_pid;
}

static void stop_zygote(void)
{
    ck_assert_int_eq(kill(the_zygote(), SIGSTOP), 0);
    ck_assert_int_eq(await_stop(the_zygote()), the_zygote());
}

static void let_go_on(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
}

/* It is let go on and nobody wants it. */
static void check_killed(pid_t pid)
{
    let_go_on(pid);
    TURN_UNTIL(scene.loop, is_gone(pid));
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

        ck_assert_msg(fd == QEMU_FD_MAILBOX || (fd < QEMU_FD_NETWORK && fd != QEMU_FD_KERNEL &&
                                                fd != QEMU_FD_INITRD),
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
    const struct vm *vm;
    char line[32];

    begin("fine");
    vm = start(0);
    ck_assert(vm->from_zygote);
    (void)snprintf(line, sizeof(line), "\nPPid:\t%d\n", (int)getpid());
    ck_assert(status_has(vm->pid, line)); /* our child, not the zygote's */
    ck_assert(status_has(vm->pid, "Name:\tqemu-fine\n"));
    ck_assert(status_has(the_zygote(), "Name:\tqemu-zygote\n"));
    ck_assert(status_has(vm->pid, "\nNoNewPrivs:\t1\n"));
    ck_assert(status_has(vm->pid, "\nCapEff:\t0000000000000000\n"));
    ck_assert(!status_has(vm->pid, "\nUid:\t0\t"));
    if (geteuid() == 0) {
        check_descriptors(vm->pid);
        if (scene.backend->confine.namespaces)
            ck_assert(!same_namespace(vm->pid, "net") && !same_namespace(vm->pid, "mnt"));
    }
    scene_stop(&scene, &seen[0]);
    ck_assert_str_eq(seen[0].reason, "it was stopped");
    scene_end(&scene);
}
END_TEST

START_TEST(test_threads)
{
    begin("threads");
    ck_assert(start(0)->from_zygote);
    end(1);
}
END_TEST

/* It may end at any time: machines go on, and the next but one is of another one. */
START_TEST(test_killed)
{
    begin("fine");
    start(0);
    ck_assert_int_eq(kill(the_zygote(), SIGKILL), 0);
    await(ZYGOTE_NONE);
    ck_assert_uint_eq(seen[0].gones, 0);
    ck_assert(!start(1)->from_zygote);
    await(ZYGOTE_READY);
    ck_assert(start(2)->from_zygote);
    end(3);
}
END_TEST

/* QEMU was upgraded: what runs is not it any more. */
START_TEST(test_other_program)
{
    char command[512];
    pid_t pid;

    begin("fine");
    pid = the_zygote();
    (void)snprintf(command, sizeof(command),
                   "cd %s/q/bin && cp -p qemu-fine new && mv new qemu-fine", scene.folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert(!start(0)->from_zygote);
    await(ZYGOTE_NONE);
    ck_assert(is_gone(pid));
    start(1);
    await(ZYGOTE_READY);
    end(2);
}
END_TEST

/* None of its machines ever came up. */
START_TEST(test_no_good)
{
    begin("noload");
    start(0);
    ck_assert_int_eq(zygote_state(scene.backend->zygote), ZYGOTE_GIVEN_UP);
    end(1);
}
END_TEST

START_TEST(test_script)
{
    const struct vm *vm;

    scene_begin(&scene, "script", "    pool_size: 0\n");
    await(ZYGOTE_GIVEN_UP);
    vm = start(0);
    ck_assert_int_eq(vm->mode, QEMU_CLONE);
    ck_assert(!vm->from_zygote);
    end(1);
}
END_TEST

/* Machines do not wait for it. */
START_TEST(test_stuck)
{
    pid_t pid;

    scene_begin(&scene, "stuck", "    pool_size: 0\n");
    pid = the_zygote();
    ck_assert(!start(0)->from_zygote);
    ck_assert_int_eq(zygote_state(scene.backend->zygote), ZYGOTE_STARTING);
    await(ZYGOTE_GIVEN_UP);
    TURN_UNTIL(scene.loop, is_gone(pid));
    end(1);
}
END_TEST

START_TEST(test_gone_with_the_adapter)
{
    pid_t pid;

    begin("fine");
    pid = the_zygote();
    ck_assert_int_gt(pid, 0);
    scene_end(&scene);
    ck_assert(is_gone(pid));
}
END_TEST

/* One that stands still holds up nobody but whoever has asked it, and those for a while. */
START_TEST(test_silent)
{
    struct vm *vm;
    pid_t pid;

    begin("fine");
    pid = the_zygote();
    stop_zygote();
    vm = ask(0);
    ck_assert_int_eq(loop_turn(scene.loop, 0), 0);
    ck_assert_int_eq(vm->state, VM_LAUNCHING); /* the loop turns */
    await_up(0);
    ck_assert(!vm->from_zygote);
    await(ZYGOTE_NONE);
    ck_assert(is_gone(pid));
    end(1);
}
END_TEST

/* Each gets its own, in whatever order they come. */
START_TEST(test_several)
{
    struct vm *vms[2];
    pid_t pids[2];

    begin("stops");
    for (int i = 0; i < 2; i++) {
        vms[i] = ask(i);
        pids[i] = await_stop(0);
    }
    let_go_on(pids[1]);
    await_up(1);
    ck_assert_int_eq(vms[1]->pid, pids[1]);
    ck_assert_int_eq(vms[0]->state, VM_LAUNCHING);
    let_go_on(pids[0]);
    await_up(0);
    ck_assert_int_eq(vms[0]->pid, pids[0]);
    ck_assert(vms[0]->from_zygote && vms[1]->from_zygote);
    end(2);
}
END_TEST

/* Its place is taken when it comes, and whoever has that does not notice. */
START_TEST(test_late)
{
    struct vm *vm;
    pid_t pid;

    begin("stops");
    vm = ask(0);
    pid = await_stop(0);
    await_up(0);
    ck_assert(!vm->from_zygote);
    ck_assert_int_eq(zygote_state(scene.backend->zygote), ZYGOTE_ENDING); /* to hear of it */
    check_killed(pid);
    await(ZYGOTE_NONE);
    end(1);
}
END_TEST

START_TEST(test_ends_while_it_is_asked)
{
    struct vm *vms[2];
    siginfo_t info;

    begin("fine");
    stop_zygote();
    for (int i = 0; i < 2; i++)
        vms[i] = ask(i);
    ck_assert_int_eq(kill(the_zygote(), SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)the_zygote(), &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(loop_turn(scene.loop, 0), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(vms[i]->state, VM_RESTORING); /* at once */
    for (int i = 0; i < 2; i++) {
        await_up(i);
        ck_assert(!vms[i]->from_zygote);
    }
    end(2);
}
END_TEST

/* What it had begun to clone as it ended comes, and is waited for. */
START_TEST(test_ends_before_its_clone_comes)
{
    struct vm *vm;
    siginfo_t info;
    pid_t pid;

    begin("stops");
    vm = ask(0);
    pid = await_stop(0);
    ck_assert_int_eq(kill(the_zygote(), SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)the_zygote(), &info, WEXITED | WNOWAIT), 0);
    await(ZYGOTE_ENDING);
    ck_assert_int_eq(vm->state, VM_LAUNCHING);
    let_go_on(pid);
    await_up(0);
    ck_assert_int_eq(vm->pid, pid);
    await(ZYGOTE_NONE);
    end(1);
}
END_TEST

START_TEST(test_stopped_while_it_waits)
{
    pid_t pid;

    begin("stops");
    ask(0);
    pid = await_stop(0);
    scene_stop(&scene, &seen[0]);
    ck_assert_str_eq(seen[0].reason, "it was stopped");
    ck_assert_uint_eq(scene_vm_count(&scene), 0);
    check_killed(pid);
    ck_assert_int_eq(zygote_state(scene.backend->zygote), ZYGOTE_READY);
    scene_end(&scene);
}
END_TEST

/* The adapter ends: a machine that has come already, and one that comes yet. */
START_TEST(test_closed_while_it_waits)
{
    siginfo_t info;
    pid_t pids[2];

    begin("stops");
    for (int i = 0; i < 2; i++) {
        ask(i);
        pids[i] = await_stop(0);
    }
    let_go_on(pids[0]);
    while (!status_has(pids[0], "\nNoNewPrivs:\t1\n") || !status_has(pids[0], "\nState:\tS"))
        ; /* its word is not read, as the loop stands still */
    for (int i = 0; i < 2; i++)
        qemu_backend_ops.machine_free(seen[i].machine);
    scene_end(&scene);
    ck_assert(is_gone(pids[0]));
    let_go_on(pids[1]);
    ck_assert_int_eq(waitid(P_PID, (id_t)pids[1], &info, WEXITED), 0);
    ck_assert_int_eq(info.si_code, CLD_EXITED);
    ck_assert_int_eq(info.si_status, 127);
}
END_TEST

UNIT_MAIN("qemu_zygote", test_confined, test_threads, test_killed, test_other_program,
          test_no_good, test_script, test_stuck, test_gone_with_the_adapter, test_silent,
          test_several, test_late, test_ends_while_it_is_asked,
          test_ends_before_its_clone_comes, test_stopped_while_it_waits,
          test_closed_while_it_waits)
