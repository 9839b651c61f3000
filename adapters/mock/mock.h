/* mock.h - the back end without machines: the guest agent of the VMs, under bubblewrap.
 *
 * mock.c     the table of operations, settings, start and end of the process
 * machine.c  one sandbox's processes, from start to gone
 * launcher.c how they are started: namespaces and the throw-away root
 * console.c  the tail of what they write to standard error
 * script.c   faults as they are asked for: parsed, matched, counted
 * faults.c   what each of them does to calls and answers
 * older.c    answers as an older minor of the contract gives them
 *
 * No security boundary: it is for testing callers, not for running strangers' code. */
#pragma once

#include "backend.h"
#include "fault.h"
#include "launcher.h"
#include "script.h"
#include "workers.h"

struct backend {
    struct loop *loop;
    struct launcher launcher;
    struct script script;
    struct fault hooks;
    char *installer;
    struct list machines; /* struct machine, of machine.c */
    struct list held;     /* struct held_call, of faults.c */
    struct loop_timer *reconnect;
    struct adapter *adapter; /* as the first fault showed it */
    struct workers *workers; /* NULL until the first worker:: operation */

    /* What faults changed for good. */
    uint32_t major;
    uint32_t minor;
    bool extra_keys;
    bool deterministic;
    uint64_t ids; /* given out deterministically */
    uint64_t mute_until_ms;
};

extern const struct backend_ops mock_ops;

/* machine.c; see backend.h. */
int mock_machine_start(struct backend *backend, const struct machine_spec *spec,
                       const struct machine_events *events, void *ctx,
                       struct machine **ret_machine, struct sandbox_error *err);
int mock_machine_kill(struct machine *machine, struct sandbox_error *err);
int64_t mock_machine_last_payload(const struct machine *machine);
void mock_machine_free(struct machine *machine);

/* The sandbox with this id does nothing any more, but can still be killed. */
void mock_machine_freeze(struct backend *backend, const char *id);

/* faults.c */
int mock_faults_init(struct backend *backend); /* 0 or -errno */
void mock_faults_done(struct backend *backend);
/* One rule as JSON text. S001, S400. */
int mock_faults_add(struct backend *backend, const char *json, size_t size,
                    struct sandbox_error *err);
/* The operation `fault`. */
void mock_faults_serve(struct backend *backend, struct request *request);
