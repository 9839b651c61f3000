/* vm_state.h - what the files vm*.c and template.c share of a vm; nobody else includes it. */
#pragma once

#include <assert.h>
#include <stdbool.h>

#include "accel.h"
#include "console.h"
#include "list.h"
#include "vm.h"

#define VM_NAME_MAX 64
#define VM_REASON_MAX 512

#define VM_STRING_(number) #number
#define VM_STRING(number) VM_STRING_(number)

struct vm {
    struct list node; /* in backend->vms */
    struct backend *backend;
    char name[VM_NAME_MAX];
    enum qemu_mode mode;
    enum vm_state state;
    const struct vm_events *events; /* NULL: freed, waits for its process to be reaped */
    void *ctx;
    void (*on_migration)(void *ctx, const char *status);

    struct vm_launch *launch; /* what its process is started with; NULL: it was */
    struct loop_notice ended; /* deferred: it has no process and gets none */
    pid_t pid;                /* 0: none yet */
    struct loop_child *child;
    struct qmp *qmp;
    struct network *network; /* NULL: none */
    bool from_zygote;        /* it began there, see zygote.h */
    bool may_end;            /* it was told to: the end of its monitor is no failure */
    bool failed;             /* it ended, or had to be ended, without its owner's wish */
    enum accel_kind accel;
    struct loop_timer *trial; /* until it is up: its accelerator is unproven; NULL: it is not */
    int agent_fd;             /* -1: taken */
    int disk_fd;              /* of a disk that is thrown away, to see how large it is; -1 */
    int mailbox_fd;           /* memory of its disk for bulk; -1: taken */
    int agent_peer_fd;        /* not cold: QEMU's end, kept to speak for the guest */
    struct loop_io *agent_io;
    int console_fd;
    struct loop_io *console_io;
    struct console console;
    char reason[VM_REASON_MAX]; /* why we ended it; "": we did not */
    uint64_t began_ms;
    uint64_t up_ms; /* 0: not yet */
};

/* Where a clone loads its state from. */
#define VM_STATE_URI "fd:10"
static_assert(QEMU_FD_STATE == 10, "VM_STATE_URI names it");

bool vm_move_allowed(enum vm_state from, enum vm_state to);

/* Arguments of migrate-set-capabilities, the same on both sides. */
json_t *vm_migration_capabilities(void);
/* Status of a migration away from here. */
void vm_watch_migration(struct vm *vm, void (*fn)(void *ctx, const char *status));
/* It was told to quit. */
void vm_expect_end(struct vm *vm);

/* vm_spawn.c. Its process is not wanted any more. NULL is fine. */
void vm_launch_free(struct vm_launch *launch);

/* vm.c, for vm_spawn.c: its process is there, begins to load the state. */
void vm_restore(struct vm *vm);
/* It is of no use any more. What cannot be killed is told by its owner's deadline. */
void vm_fail(struct vm *vm, const char *reason);
void vm_on_ended(void *ctx);
void vm_on_console(void *ctx, uint32_t events);
void vm_on_agent(void *ctx, uint32_t events);
void vm_on_child(void *ctx, int wait_status);
void vm_on_trial(void *ctx);
void vm_on_qmp_event(void *ctx, const char *name, const json_t *data);
void vm_on_qmp_closed(void *ctx, const char *reason);

/* The process ends: kills, reaps and frees all of the list. */
void vms_end(struct list *vms);
