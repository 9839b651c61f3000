/* worker_vm.h - one VM for the scripts of a worker: image, boot, sync, end.
 *
 * It is a sandbox of a registry of its own, so that boot, silence and end are the same code as
 * of every other machine; no caller sees it as a sandbox. */
#pragma once

#include "registry.h"
#include "request.h"

/* States; worker_vm.c alone moves them:
 *   image     the image is looked for or installed
 *   booting   until the guest agent is configured
 *   up        scripts may run in it
 *   syncing   what was written goes to its disk
 *   stopping  it is being powered off
 *   stuck     it could not be killed; worker_vm_stop() may be tried again
 *   gone      told; only worker_vm_free() may come */
enum worker_vm_state {
    WORKER_VM_IMAGE,
    WORKER_VM_BOOTING,
    WORKER_VM_UP,
    WORKER_VM_SYNCING,
    WORKER_VM_STOPPING,
    WORKER_VM_STUCK,
    WORKER_VM_GONE,
    WORKER_VM_STATE_MAX
};

struct worker_vm_spec {
    struct request
        *request; /* settings, progress; must not be answered before `up` or `gone` */
    struct registry *registry;
    const char *image;
    const char *name; /* of the worker */
    uint32_t cpus;
    uint32_t memory_mb;
    bool network;
    const struct machine_lasting *lasting; /* borrowed until `up` or `gone` */
};

/* None from inside a call to the vm. */
struct worker_vm_events {
    void (*up)(void *ctx);
    /* Once, last: it has ended, or never came up. ERR says why: S101, S102, S300 (borrowed, may
     * be moved). The vm may be freed in it. */
    void (*gone)(void *ctx, struct sandbox_error *err);
    /* It was to be stopped and could not be killed: S300 (borrowed, may be moved). */
    void (*stuck)(void *ctx, struct sandbox_error *err);
};

struct worker_vm;

/* SPEC is borrowed for the call but where it says more. -1 (S300): not begun. */
int worker_vm_start(const struct worker_vm_spec *spec, const struct worker_vm_events *events,
                    void *ctx, struct worker_vm **ret_vm, struct sandbox_error *err);
enum worker_vm_state worker_vm_state(const struct worker_vm *vm);
/* For its scripts; borrowed. */
struct sandbox *worker_vm_sandbox(const struct worker_vm *vm);
/* Ends it, in whatever state; SYNC: what was written is on its disk first. `gone` or `stuck`
 * follows. */
#define WORKER_VM_SYNC_MS 30000u
void worker_vm_stop(struct worker_vm *vm, const char *why, bool sync);
/* The guest has answered the sync of worker_vm_stop(): what was written before is on its disk.
 */
bool worker_vm_synced(const struct worker_vm *vm);
/* Only when it is gone, or when the process ends. NULL is fine. */
void worker_vm_free(struct worker_vm *vm);
