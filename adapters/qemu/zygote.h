/* zygote.h - a QEMU that was started once and never begins: what it has loaded and linked is
 * there already in each machine that is cloned from it.
 *
 * Linking QEMU takes longer than anything else that a clone's start does, and the pages that it
 * changes are each process's own; here they are shared. zygote/preload.c is the other end: it
 * waits in front of main(), clones itself for each machine, and the clone, confined as any
 * other machine, goes on into main(). Machines are children of the adapter, not of the zygote:
 * they neither end with it nor because of it. It runs nothing of a guest's.
 *
 * Where that cannot be done (QEMU is a script, is linked statically, has threads) machines are
 * started one by one, which is logged once. */
#pragma once

#include "loop.h"
#include "proc.h"
#include "qemu_settings.h"

struct zygote;

enum zygote_state {
    ZYGOTE_NONE,     /* none runs; whoever wants a machine starts one for the next */
    ZYGOTE_STARTING, /* it links; ends with its greeting */
    ZYGOTE_READY,    /* makes machines */
    ZYGOTE_ENDING,   /* killed, not reaped yet; the next is none */
    ZYGOTE_GIVEN_UP, /* there is none any more, for good */
    ZYGOTE_STATE_MAX
};

/* SETTINGS are borrowed for its life. */
int zygote_new(struct loop *loop, const struct qemu_settings *settings,
               struct zygote **ret_zygote);
void zygote_free(struct zygote *zygote);
enum zygote_state zygote_state(const struct zygote *zygote);
pid_t zygote_pid(const struct zygote *zygote); /* as it was last; 0: never */

/* Like proc_spawn() of SPEC, whose before_exec is confine_child(). -EAGAIN: not by the zygote,
 * now or ever. */
int zygote_spawn(struct zygote *zygote, const struct proc_spec *spec, pid_t *ret_pid,
                 int *ret_pidfd);

/* A machine of its own came up, or never did: then it is given up unless another one has. */
void zygote_prove(struct zygote *zygote);
void zygote_doubt(struct zygote *zygote, const char *why);
