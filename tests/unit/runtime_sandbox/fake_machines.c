/* fake_machines.c - see fake_machines.h. */
#include "fake_machines.h"

#include "fixture.h"

struct fake_machines fake_machines;

static void on_start(void *ctx)
{
    struct machine *machine = ctx;

    if (fake_machines.has_no_agent)
        return;
    if (!fake_machines.sends_nothing)
        fake_guest_hello(machine->guest, 1);
    machine->guest->keeps_configured = fake_machines.guest_keeps_configured;
    machine->events->agent(machine->ctx, take_fd(&machine->host_fd), -1, fake_machines.network);
}

void fake_machine_die(struct machine *machine, const char *reason, const char *console)
{
    loop_notice_cancel(fixture.loop, &machine->start);
    fake_guest_close(machine->guest);
    machine->events->gone(machine->ctx, reason, console);
}

static void on_gone(void *ctx)
{
    fake_machine_die(ctx, "killed", "");
}

static int machine_start(struct backend *backend, const struct machine_spec *spec,
                         const struct machine_events *events, void *ctx,
                         struct machine **ret_machine, struct sandbox_error *err)
{
    struct machine *machine;

    if (fake_machines.refuses_start)
        return sandbox_error_set(err, S300, "sandbox %s, boot: no machine for you", spec->id);
    machine = calloc(1, sizeof(*machine));
    ck_assert_uint_lt(fake_machines.count, FAKE_MACHINES_MAX);
    fake_machines.all[fake_machines.count++] = machine;
    fake_machines.live++;
    machine->spec = *spec;
    machine->events = events;
    machine->ctx = ctx;
    machine->payload_secs = -1;
    machine->guest = fake_guest_new(fixture.loop, &machine->host_fd);
    loop_notice_init(&machine->start, on_start, machine);
    loop_notice_init(&machine->gone, on_gone, machine);
    loop_notify(fixture.loop, &machine->start);
    *ret_machine = machine;
    return 0;
}

static int machine_kill(struct machine *machine, struct sandbox_error *err)
{
    machine->kills++;
    if (fake_machines.cannot_be_killed)
        return sandbox_error_set(err, S300, "it cannot be killed");
    if (!fake_machines.ignores_kills)
        loop_notify(fixture.loop, &machine->gone);
    return 0;
}

static void machine_ready(struct machine *machine)
{
    machine->readies++;
}

static void machine_settled(struct machine *machine)
{
    machine->settleds++;
}

static void machine_wanted(struct machine *machine)
{
    machine->wants++;
}

static int64_t machine_last_payload(const struct machine *machine)
{
    return machine->payload_secs;
}

static void machine_free(struct machine *machine)
{
    for (unsigned i = 0; i < fake_machines.count; i++) {
        if (fake_machines.all[i] == machine)
            fake_machines.all[i] = NULL;
    }
    fake_machines.live--;
    closep(&machine->host_fd);
    fake_guest_free(machine->guest);
    free(machine);
}

const struct backend_ops fake_machine_ops = {
    .machine_start = machine_start,
    .machine_kill = machine_kill,
    .machine_ready = machine_ready,
    .machine_settled = machine_settled,
    .machine_wanted = machine_wanted,
    .machine_last_payload = machine_last_payload,
    .machine_free = machine_free,
};

struct machine *fake_machine(unsigned index)
{
    TURN_UNTIL(fixture.loop, fake_machines.count > index);
    return fake_machines.all[index];
}
