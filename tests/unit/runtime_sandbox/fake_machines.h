/* fake_machines.h - machines whose guests the test plays. */
#pragma once

#include "backend.h"
#include "fake_guest.h"

struct machine {
    struct machine_spec spec; /* texts are borrowed from the sandbox */
    const struct machine_events *events;
    void *ctx;
    struct fake_guest *guest;
    int host_fd; /* until the agent's socket is handed over */
    unsigned kills, readies, settleds, wants;
    int64_t payload_secs;
    struct loop_notice start;
    struct loop_notice gone;
};

#define FAKE_MACHINES_MAX 512

/* How the next machines behave. */
struct fake_machines {
    struct machine *all[FAKE_MACHINES_MAX]; /* in the order of their start */
    unsigned count;                         /* ever started */
    unsigned live;                          /* not freed yet */
    bool refuses_start;
    bool has_no_agent;  /* the agent's socket never comes */
    bool sends_nothing; /* no HELLO by itself */
    bool cannot_be_killed;
    bool ignores_kills; /* takes them, but does not end */
    bool guest_keeps_configured;
    const struct machine_network *network;
};
extern struct fake_machines fake_machines;
extern const struct backend_ops fake_machine_ops;

/* Turns until the machine number INDEX was started. */
struct machine *fake_machine(unsigned index);
/* It ends by itself. */
void fake_machine_die(struct machine *machine, const char *reason, const char *console);
