/* vm.h - one QEMU: its process, monitor, console and the socket of its guest's agent.
 *
 * It knows no sandbox and no template: who made it says how it begins (cold, template, clone)
 * and decides what becomes of it. A machine ends with its adapter, whatever happens. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "loop.h"
#include "qemu_args.h"
#include "qmp.h"

struct backend;
struct network;
struct vm;

enum vm_state {
    VM_LAUNCHING, /* a clone has no process yet: the zygote was asked for it */
    VM_BOOTING,   /* kernel and agent start; ends with the agent's first bytes */
    VM_RESTORING, /* a clone loads its state and is let go on */
    VM_UP,        /* the agent's socket may be taken and used */
    VM_STOPPING,  /* killed, not reaped yet */
    VM_GONE,      /* reaped; `gone` was called, or is about to be */
    VM_STATE_MAX
};

/* What a worker's machine has besides; borrowed. */
struct vm_lasting {
    int workspace_fd;
    int lock_fd;
};

/* All descriptors are borrowed; -1: not of this mode. */
struct vm_spec {
    const char *name; /* for the log; copied */
    enum qemu_mode mode;
    struct qemu_shape shape;
    int image_fd;
    int disk_fd;
    int kernel_fd;
    int initrd_fd;
    int memory_fd;
    int state_fd;
    const struct vm_lasting *lasting; /* NULL: the disk is thrown away */
};

/* Never from inside a call to the vm. */
struct vm_events {
    /* VM_UP was reached. Cold and template: the agent's HELLO waits in the socket. */
    void (*up)(void *ctx);
    /* Once, last. REASON in words; CONSOLE is the end of what the machine wrote. Borrowed for
     * the call, in which the vm may be freed. */
    void (*gone)(void *ctx, const char *reason, const char *console);
};

int vm_new(struct backend *backend, const struct vm_spec *spec, const struct vm_events *events,
           void *ctx, struct vm **ret_vm, struct sandbox_error *err);

enum vm_state vm_state(const struct vm *vm);
/* Room that its disk takes, if that is thrown away with it. */
uint64_t vm_disk_bytes(const struct vm *vm);
const char *vm_name(const struct vm *vm);
pid_t vm_pid(const struct vm *vm); /* 0: not yet */
/* Milliseconds from its start until VM_UP, or until now. */
uint64_t vm_start_ms(const struct vm *vm);

/* Another owner, and another name for the log (NULL: keeps it). */
void vm_hand_over(struct vm *vm, const char *name, const struct vm_events *events, void *ctx);

/* The host's end of the agent's socket; the vm keeps it. */
int vm_agent_fd(const struct vm *vm);
/* Puts HELLO in front of what the guest will say, as often as somebody is to hear it. Not of a
 * cold one. -1: out of room, or taken. */
int vm_say_hello(struct vm *vm, const void *hello, size_t size);
/* Hands the socket out, once. HELLO (SIZE 0: none) is put in front of what the guest will say:
 * a clone's agent has greeted in its template. -1: out of room, or taken before. */
int vm_take_agent(struct vm *vm, const void *hello, size_t size);

/* The memory of its disk for bulk, once. */
int vm_take_mailbox(struct vm *vm);

/* Of one that is up: all of its process stands still, or goes on. 0 or -errno. */
int vm_pause(struct vm *vm);
int vm_resume(struct vm *vm);

/* It failed with an accelerator that has been given up since: another one may come up. */
bool vm_may_retry(const struct vm *vm);

/* Its network; NULL: none. */
const struct network *vm_network(const struct vm *vm);

/* QEMU's monitor; NULL after its end. */
struct qmp *vm_qmp(struct vm *vm);

/* Kills it; `gone` follows with REASON. 0 or -errno; 0 when it is being killed or gone. */
int vm_kill(struct vm *vm, const char *reason);
/* Any time. Kills what is alive; its process is reaped in the background. */
void vm_free(struct vm *vm);
DEFINE_CLEANUP(struct vm *, vm_free)
