/* test_machines.c - machines from start to end over a stand-in for QEMU: cold, templates, the
 * pool, and what happens when QEMU fails at each step. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops.h"
#include "pool_budget.h"
#include "scene.h"
#include "template_state.h"
#include "turn.h"
#include "unit.h"
#include "vm_state.h"

START_TEST(test_cold)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "fine", "    templates: false\n");
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    scene_check_hello(&seen);
    scene_stop(&scene, &seen);
    ck_assert_str_eq(seen.reason, "it was stopped");
    scene_end(&scene);
}
END_TEST

START_TEST(test_crash)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "crash", "    templates: false\n");
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.gones == 1);
    ck_assert_uint_eq(seen.agents, 0);
    ck_assert_ptr_nonnull(strstr(seen.console, "fake: no such machine"));
    qemu_backend_ops.machine_free(seen.machine);
    scene_end(&scene);
}
END_TEST

START_TEST(test_killed_from_outside)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "fine", "    templates: false\n");
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    ck_assert_int_eq(kill(LIST_ENTRY(scene.backend->vms.next, struct vm, node)->pid, SIGKILL),
                     0);
    TURN_UNTIL(scene.loop, seen.gones == 1);
    ck_assert_str_ne(seen.reason, "");
    qemu_backend_ops.machine_free(seen.machine);
    closep(&seen.fd);
    ck_assert_uint_eq(scene_vm_count(&scene), 0);
    scene_end(&scene);
}
END_TEST

START_TEST(test_killed_while_it_waits_or_boots)
{
    struct scene scene;
    struct seen waiting, booting;

    scene_begin(&scene, "silent", "    templates: false\n");
    scene_start(&scene, &waiting);
    scene_stop(&scene, &waiting); /* before its first step */
    ck_assert_str_eq(waiting.reason, "it was stopped before it began");
    scene_start(&scene, &booting);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 1);
    turn_for(scene.loop, 50);
    ck_assert_uint_eq(booting.agents, 0);
    scene_stop(&scene, &booting);
    ck_assert_str_eq(booting.reason, "it was stopped");
    scene_end(&scene);
}
END_TEST

/* Its agent's first word and its end come in the same turn of the loop. */
START_TEST(test_stopped_as_its_agent_comes)
{
    struct scene scene;
    struct seen seen;
    struct pollfd agent = { .events = POLLIN };
    const struct vm *vm;

    scene_begin(&scene, "fine", "    templates: false\n");
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 1);
    vm = LIST_ENTRY(scene.backend->vms.next, struct vm, node);
    ck_assert_int_eq(vm->state, VM_BOOTING);
    agent.fd = vm->agent_fd;
    ck_assert_int_eq(poll(&agent, 1, TURN_DEADLINE_MS), 1);
    scene_stop(&scene, &seen);
    ck_assert_str_eq(seen.reason, "it was stopped");
    ck_assert_uint_eq(seen.agents, 0);
    scene_end(&scene);
}
END_TEST

START_TEST(test_clones)
{
    struct scene scene;
    struct seen seen[3];

    scene_begin(&scene, "fine", "    pool_size: 0\n");
    for (int i = 0; i < 3; i++)
        scene_start(&scene, &seen[i]);
    for (int i = 0; i < 3; i++) {
        TURN_UNTIL(scene.loop, seen[i].agents == 1);
        scene_check_hello(&seen[i]);
    }
    ck_assert_uint_eq(scene.backend->templates->count, 1); /* one for all */
    ck_assert_uint_eq(scene_vm_count(&scene), 3);          /* and its own machine is gone */
    for (int i = 0; i < 3; i++)
        scene_stop(&scene, &seen[i]);
    scene_end(&scene);
}
END_TEST

/* A clone keeps others waiting until its guest is ready, and what a guest has put off waits for
 * all of them. */
START_TEST(test_starts_in_line)
{
    struct scene scene;
    struct seen seen[3];

    scene_begin(&scene, "fine", "    pool_size: 0\n");
    scene.backend->starts.limit = 1;
    scene_start(&scene, &seen[0]); /* makes the template */
    TURN_UNTIL(scene.loop, seen[0].settles == 1);
    scene_stop(&scene, &seen[0]);
    scene.guests_hang = true;
    for (int i = 0; i < 3; i++)
        scene_start(&scene, &seen[i]);
    TURN_UNTIL(scene.loop, seen[0].agents == 1);
    turn_for(scene.loop, 100);
    ck_assert_uint_eq(seen[1].agents, 0);
    qemu_backend_ops.machine_ready(seen[0].machine);
    TURN_UNTIL(scene.loop, seen[1].agents == 1);
    ck_assert_uint_eq(seen[0].settles, 0);
    ck_assert_uint_eq(seen[2].agents, 0);
    scene_stop(&scene, &seen[1]); /* never ready */
    TURN_UNTIL(scene.loop, seen[2].agents == 1);
    ck_assert_uint_eq(seen[0].settles, 0);
    qemu_backend_ops.machine_ready(seen[2].machine);
    TURN_UNTIL(scene.loop, seen[0].settles == 1);
    ck_assert_uint_eq(seen[2].settles, 0);
    qemu_backend_ops.machine_settled(seen[0].machine);
    TURN_UNTIL(scene.loop, seen[2].settles == 1);
    scene_stop(&scene, &seen[0]);
    scene_stop(&scene, &seen[2]);
    scene_end(&scene);
}
END_TEST

/* 'T': it stands still. */
static char process_state(const struct scene *scene, unsigned nth)
{
    struct list *node = scene->backend->vms.next;
    char path[64], text[512] = "";
    FILE *file;

    while (nth-- > 0)
        node = node->next;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat",
                   vm_pid(LIST_ENTRY(node, struct vm, node)));
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return strrchr(text, ')')[2];
}

/* A signal is no event of the loop. */
static void await_standing(const struct scene *scene, unsigned nth, bool stands)
{
    const uint64_t end_ms = loop_now_ms(scene->loop) + TURN_DEADLINE_MS;

    while ((process_state(scene, nth) == 'T') != stands) {
        ck_assert_uint_lt(loop_now_ms(scene->loop), end_ms);
        turn_for(scene->loop, 1);
    }
}

/* Who is ready takes no processor from those still waited for, until somebody wants it. */
START_TEST(test_paused_while_others_start)
{
    struct scene scene;
    struct seen seen[4];

    scene_begin(&scene, "fine", "    pool_size: 0\n");
    scene.backend->starts.limit = 1;
    scene_start(&scene, &seen[0]); /* makes the template; alone, it never stands still */
    TURN_UNTIL(scene.loop, seen[0].settles == 1);
    ck_assert_int_ne(process_state(&scene, 0), 'T');
    scene_stop(&scene, &seen[0]);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 0);
    scene.guests_hang = true;
    for (int i = 0; i < 4; i++)
        scene_start(&scene, &seen[i]);
    for (unsigned i = 0; i < 3; i++) {
        TURN_UNTIL(scene.loop, seen[i].agents == 1);
        qemu_backend_ops.machine_ready(seen[i].machine);
        await_standing(&scene, i, true);
    }
    qemu_backend_ops.machine_wanted(seen[2].machine);
    await_standing(&scene, 2, false);
    TURN_UNTIL(scene.loop, seen[3].agents == 1); /* and is never ready */
    await_standing(&scene, 1, false);            /* long enough */
    ck_assert_uint_eq(seen[1].settles, 0);
    scene_stop(&scene, &seen[3]);
    TURN_UNTIL(scene.loop, seen[0].settles == 1);
    for (int i = 0; i < 3; i++)
        scene_stop(&scene, &seen[i]);
    scene_end(&scene);
}
END_TEST

/* Its turn to settle lets it go on, and it ends as any other. */
START_TEST(test_paused_until_it_settles)
{
    struct scene scene;
    struct seen seen[2];

    scene_begin(&scene, "fine", "    templates: false\n");
    scene.backend->starts.limit = 1;
    scene.guests_hang = true;
    for (unsigned round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++)
            scene_start(&scene, &seen[i]);
        TURN_UNTIL(scene.loop, seen[0].agents == 1);
        qemu_backend_ops.machine_ready(seen[0].machine);
        await_standing(&scene, 0, true);
        if (round == 0) {
            TURN_UNTIL(scene.loop, seen[1].agents == 1);
            qemu_backend_ops.machine_ready(seen[1].machine);
            TURN_UNTIL(scene.loop, seen[0].settles == 1);
            await_standing(&scene, 0, false);
        }
        for (int i = 0; i < 2; i++)
            scene_stop(&scene, &seen[i]);
        TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 0);
    }
    scene_end(&scene);
}
END_TEST

START_TEST(test_whoever_waits_can_be_stopped)
{
    struct scene scene;
    struct seen first, waiting, next;

    scene_begin(&scene, "fine", "    templates: false\n");
    scene.backend->starts.limit = 1;
    scene.guests_hang = true;
    scene_start(&scene, &first);
    TURN_UNTIL(scene.loop, first.agents == 1);
    scene_start(&scene, &waiting);
    scene_start(&scene, &next);
    turn_for(scene.loop, 20);
    scene_stop(&scene, &waiting);
    ck_assert_str_eq(waiting.reason, "it was stopped before it began");
    ck_assert_uint_eq(next.agents, 0);
    qemu_backend_ops.machine_ready(first.machine);
    TURN_UNTIL(scene.loop, next.agents == 1);
    scene_stop(&scene, &first);
    scene_stop(&scene, &next);
    scene_end(&scene);
}
END_TEST

/* Its guest hangs behind the agent's socket: nobody waits for it for long. */
START_TEST(test_a_wedged_clone_keeps_nobody)
{
    struct scene scene;
    struct seen seen[2];

    scene_begin(&scene, "fine", "    pool_size: 0\n");
    scene.backend->starts.limit = 1;
    scene.guests_hang = true;
    for (int i = 0; i < 2; i++)
        scene_start(&scene, &seen[i]);
    for (int i = 0; i < 2; i++)
        TURN_UNTIL(scene.loop, seen[i].agents == 1);
    for (int i = 0; i < 2; i++)
        scene_stop(&scene, &seen[i]);
    scene_end(&scene);
}
END_TEST

/* The pool is filled when nobody waits. */
START_TEST(test_the_pool_waits_for_callers)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "fine", "    pool_size: 1\n");
    scene.backend->starts.limit = 1;
    scene.guests_hang = true;
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1 && scene_vm_count(&scene) == 1);
    turn_for(scene.loop, 600);
    ck_assert_uint_eq(scene_vm_count(&scene), 1);
    qemu_backend_ops.machine_ready(seen.machine);
    TURN_UNTIL(scene.loop, seen.settles == 1);
    qemu_backend_ops.machine_settled(seen.machine);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 2);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

static struct template *first_template(const struct scene *scene)
{
    return LIST_ENTRY(scene->backend->templates->all.next, struct template, node);
}

START_TEST(test_template_is_sealed)
{
    struct scene scene;
    struct seen seen;
    struct template *template;
    int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    scene_begin(&scene, "fine", "    pool_size: 0\n");
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    template = first_template(&scene);
    ck_assert_int_eq(fcntl(template->parts.memory_fd, F_GET_SEALS), seals);
    ck_assert_int_eq(fcntl(template->parts.state_fd, F_GET_SEALS), seals);
    ck_assert_int_eq(pwrite(template->parts.memory_fd, "x", 1, 0), -1);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

/* Whatever is wrong with templates, machines come up. */
START_TEST(test_cold_when_templates_fail)
{
    static const char *const behaviours[] = { "nosave", "noload" };

    for (size_t i = 0; i < ARRAY_SIZE(behaviours); i++) {
        struct scene scene;
        struct seen seen;

        scene_begin(&scene, behaviours[i], "    pool_size: 0\n");
        scene_start(&scene, &seen);
        TURN_UNTIL(scene.loop, seen.agents == 1);
        scene_check_hello(&seen);
        /* The newest; the others may not be reaped yet. */
        ck_assert_int_eq(LIST_ENTRY(scene.backend->vms.previous, struct vm, node)->mode,
                         QEMU_COLD);
        scene_stop(&scene, &seen);
        scene_end(&scene);
    }
}
END_TEST

START_TEST(test_template_that_never_rests)
{
    struct scene scene;
    struct seen seen;
    uint64_t began_ms;

    scene_begin(&scene, "busy", "    pool_size: 0\n");
    began_ms = loop_now_ms(scene.loop);
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    ck_assert_uint_ge(loop_now_ms(scene.loop) - began_ms, QUIET_PATIENCE_MS);
    scene_check_hello(&seen);
    ck_assert_int_eq(template_state(first_template(&scene)), TEMPLATE_READY);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

START_TEST(test_template_ends_while_it_rests)
{
    for (int killed = 0; killed < 2; killed++) {
        struct scene scene;
        struct seen seen;

        scene_begin(&scene, "busy", "    pool_size: 0\n");
        scene_start(&scene, &seen);
        TURN_UNTIL(scene.loop, !list_empty(&scene.backend->templates->all));
        TURN_UNTIL(scene.loop, template_state(first_template(&scene)) == TEMPLATE_RESTING);
        if (killed) {
            ck_assert_int_eq(kill(vm_pid(first_template(&scene)->vm), SIGKILL), 0);
            TURN_UNTIL(scene.loop, seen.agents == 1); /* cold */
            ck_assert_int_eq(template_state(first_template(&scene)), TEMPLATE_FAILED);
        }
        scene_stop(&scene, &seen);
        scene_end(&scene);
    }
}
END_TEST

START_TEST(test_template_of_a_crash)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "crash", "");
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.gones == 1);
    ck_assert_ptr_nonnull(strstr(seen.console, "fake: no such machine"));
    qemu_backend_ops.machine_free(seen.machine);
    scene_end(&scene);
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

        scene_begin(&scene, rows[i].behaviour, rows[i].more);
        scene.backend->accel = (struct accel){ .kind = ACCEL_KVM, .unproven = true };
        scene_start(&scene, &seen);
        TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 1);
        if (strcmp(rows[i].behaviour, "kvmhang") == 0)
            vm_on_trial(LIST_ENTRY(scene.backend->vms.next, struct vm, node));
        TURN_UNTIL(scene.loop, seen.agents == 1);
        scene_check_hello(&seen);
        ck_assert_int_eq(scene.backend->accel.kind, ACCEL_TCG);
        scene_stop(&scene, &seen);
        scene_end(&scene);
    }
}
END_TEST

/* One that has served is not doubted for a machine that does not come up, nor is one that was
 * asked for by name. */
START_TEST(test_kvm_is_kept)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "nokvm", "");
    scene.backend->accel = (struct accel){ .kind = ACCEL_KVM };
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.gones == 1);
    ck_assert_int_eq(scene.backend->accel.kind, ACCEL_KVM);
    qemu_backend_ops.machine_free(seen.machine);
    scene_end(&scene);
}
END_TEST

START_TEST(test_kvm_proves_itself)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "fine", "");
    scene.backend->accel = (struct accel){ .kind = ACCEL_KVM, .unproven = true };
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    ck_assert_int_eq(scene.backend->accel.kind, ACCEL_KVM);
    ck_assert(!scene.backend->accel.unproven);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

static void fill_pool(struct scene *scene, struct seen *seen, size_t machines)
{
    scene_start(scene, seen);
    TURN_UNTIL(scene->loop, seen->agents == 1);
    TURN_UNTIL(scene->loop, scene_vm_count(scene) == machines);
    turn_for(scene->loop, 600); /* more would come now */
    ck_assert_uint_eq(scene_vm_count(scene), machines);
}

START_TEST(test_pool)
{
    struct scene scene;
    struct seen first, second;
    uint64_t began_ms;

    scene_begin(&scene, "fine", "    pool_size: 2\n");
    fill_pool(&scene, &first, 3);
    began_ms = loop_now_ms(scene.loop);
    scene_start(&scene, &second);
    ck_assert_int_eq(loop_turn(scene.loop, 0), 0);
    ck_assert_int_eq(loop_turn(scene.loop, 0), 0);
    ck_assert_uint_eq(second.agents, 1); /* nothing had to be waited for */
    ck_assert_uint_lt(loop_now_ms(scene.loop) - began_ms, 1000);
    scene_check_hello(&second);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 4); /* the place is filled again */
    scene_stop(&scene, &first);
    scene_stop(&scene, &second);
    scene_end(&scene);
}
END_TEST

START_TEST(test_pool_loses_a_machine)
{
    struct scene scene;
    struct seen seen;
    struct vm *last;

    scene_begin(&scene, "fine", "    pool_size: 1\n");
    fill_pool(&scene, &seen, 2);
    last = LIST_ENTRY(scene.backend->vms.previous, struct vm, node);
    ck_assert_int_eq(kill(last->pid, SIGKILL), 0);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 1);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 2);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

START_TEST(test_pool_is_bounded_in_all)
{
    struct scene scene;
    struct seen seen[2];

    scene_begin(&scene, "fine", "    pool_size: 2\n    max_pool_size: 2\n");
    fill_pool(&scene, &seen[0], 3);
    scene.image.content = (char *)(uintptr_t) "d2"; /* takes over the places of d1 */
    fill_pool(&scene, &seen[1], 4);
    ck_assert_uint_eq(scene.backend->templates->count, 2);
    for (int i = 0; i < 2; i++)
        scene_stop(&scene, &seen[i]);
    scene_end(&scene);
}
END_TEST

START_TEST(test_templates_are_bounded)
{
    static const char *const digests[] = { "d1", "d2", "d3" };
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "fine", "    pool_size: 1\n    max_templates: 2\n");
    for (size_t i = 0; i < ARRAY_SIZE(digests); i++) {
        scene.image.content = (char *)(uintptr_t)digests[i];
        scene_start(&scene, &seen);
        TURN_UNTIL(scene.loop, seen.agents == 1);
        scene_stop(&scene, &seen);
    }
    ck_assert_uint_eq(scene.backend->templates->count, 2);
    ck_assert_str_eq(
        LIST_ENTRY(scene.backend->templates->all.next, struct template, node)->digest, "d2");
    scene_end(&scene);
}
END_TEST

/* What the old QEMU saved is not for the new one, nor are its machines in the pool. */
START_TEST(test_upgrade)
{
    char command[512];
    struct scene scene;
    struct seen seen[2];
    const struct templates *templates;
    ino_t before;

    scene_begin(&scene, "fine", "    pool_size: 1\n");
    templates = scene.backend->templates;
    scene_start(&scene, &seen[0]);
    TURN_UNTIL(scene.loop, seen[0].agents == 1 && scene_vm_count(&scene) == 2);
    before = templates->program.status.st_ino;
    (void)snprintf(command, sizeof(command),
                   "cd %s/q/bin && cp -p qemu-fine new && echo more >>new && mv new qemu-fine",
                   scene.folder);
    ck_assert_int_eq(system(command), 0);
    scene_start(&scene, &seen[1]);
    TURN_UNTIL(scene.loop, templates->program.status.st_ino != before);
    ck_assert_uint_eq(templates->count, 1);
    ck_assert_int_lt(template_state(LIST_ENTRY(templates->all.next, struct template, node)),
                     TEMPLATE_READY); /* made anew */
    TURN_UNTIL(scene.loop, seen[1].agents == 1);
    for (int i = 0; i < 2; i++)
        scene_stop(&scene, &seen[i]);
    scene_end(&scene);
}
END_TEST

/* Two would need more: one stays. The stand-in writes to a page of the template, so it has some
 * memory for itself. */
START_TEST(test_pool_keeps_to_its_memory)
{
    struct scene scene;
    struct seen seen;
    uint64_t one_kb;

    scene_begin(&scene, "fine", "    pool_size: 4\n    pool_memory_mb: 1\n");
    scene_start(&scene, &seen);
    TURN_UNTIL(scene.loop, seen.agents == 1);
    TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 2);
    turn_for(scene.loop, 1000);
    one_kb = pool_budget_memory_kb(
        LIST_ENTRY(scene.backend->vms.previous, struct vm, node)->pid);
    ck_assert_uint_gt(one_kb, 0);
    ck_assert_uint_le(scene_vm_count(&scene) - 1, 1024 / one_kb);
    scene_stop(&scene, &seen);
    scene_end(&scene);
}
END_TEST

/* Its agent knows no rehearsal: its machines are pinged alone. */
START_TEST(test_pool_of_an_old_agent)
{
    struct scene scene;
    struct seen first, second;

    scene_begin(&scene, "old", "    pool_size: 1\n");
    fill_pool(&scene, &first, 2);
    scene_start(&scene, &second);
    TURN_UNTIL(scene.loop, second.agents == 1);
    scene_check_hello(&second);
    scene_stop(&scene, &first);
    scene_stop(&scene, &second);
    scene_end(&scene);
}
END_TEST

/* What does not come through its rehearsal is never given away; machines come up all the same.
 */
START_TEST(test_pool_that_cannot_rehearse)
{
    struct scene scene;
    struct seen seen;

    scene_begin(&scene, "stiff", "    pool_size: 1\n");
    for (int i = 0; i < 2; i++) {
        scene_start(&scene, &seen);
        TURN_UNTIL(scene.loop, seen.agents == 1);
        scene_check_hello(&seen);
        TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 2);
        TURN_UNTIL(scene.loop, scene_vm_count(&scene) == 1);
        scene_stop(&scene, &seen);
    }
    scene_end(&scene);
}
END_TEST

START_TEST(test_closing_kills_the_pool)
{
    struct scene scene;
    struct seen seen;
    pid_t pid;

    scene_begin(&scene, "fine", "    pool_size: 1\n");
    fill_pool(&scene, &seen, 2);
    pid = LIST_ENTRY(scene.backend->vms.previous, struct vm, node)->pid;
    scene_stop(&scene, &seen);
    scene_end(&scene);
    ck_assert_int_eq(kill(pid, 0), -1);
}
END_TEST

UNIT_MAIN("qemu_machines", test_cold, test_crash, test_killed_from_outside,
          test_killed_while_it_waits_or_boots, test_stopped_as_its_agent_comes, test_clones,
          test_starts_in_line, test_paused_while_others_start, test_paused_until_it_settles,
          test_whoever_waits_can_be_stopped, test_a_wedged_clone_keeps_nobody,
          test_the_pool_waits_for_callers, test_template_is_sealed,
          test_cold_when_templates_fail, test_template_that_never_rests,
          test_template_ends_while_it_rests, test_template_of_a_crash, test_kvm_is_given_up,
          test_kvm_is_kept, test_kvm_proves_itself, test_pool, test_pool_loses_a_machine,
          test_pool_is_bounded_in_all, test_templates_are_bounded, test_upgrade,
          test_pool_keeps_to_its_memory, test_pool_of_an_old_agent,
          test_pool_that_cannot_rehearse, test_closing_kills_the_pool)
