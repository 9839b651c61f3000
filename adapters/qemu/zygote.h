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

#include "list.h"
#include "loop.h"
#include "proc.h"
#include "qemu_settings.h"

struct zygote;

enum zygote_state {
    ZYGOTE_NONE,     /* none runs; whoever wants a machine starts one for the next */
    ZYGOTE_STARTING, /* it links; ends with its greeting, or when that is late */
    ZYGOTE_READY,    /* makes machines */
    ZYGOTE_ENDING,   /* ended or killed, its last clones may speak yet; the next is none */
    ZYGOTE_GIVEN_UP, /* there is none any more, for good */
    ZYGOTE_STATE_MAX
};

/* SETTINGS are borrowed for its life. */
int zygote_new(struct loop *loop, const struct qemu_settings *settings,
               struct zygote **ret_zygote);
/* Nobody waits any more. */
void zygote_free(struct zygote *zygote);
enum zygote_state zygote_state(const struct zygote *zygote);
pid_t zygote_pid(const struct zygote *zygote); /* as it was last; 0: never */

/* Waits for a machine's process; lives in whoever waits.
 *
 * DONE is called once, never from inside zygote_spawn(), within two seconds: with 0, a child of
 * ours and its pidfd, which is the callee's; or with -errno of what the clone could not do; or
 * with -EAGAIN when there comes none: the zygote ended or is stuck. */
typedef void zygote_wait_fn(void *ctx, int result, pid_t pid, int own_pidfd);
struct zygote_wait {
    struct list node; /* in zygote->waits */
    uint64_t id;
    uint64_t until_ms;
    int permit_fd; /* closed: it may not begin */
    zygote_wait_fn *done;
    void *ctx;
};
void zygote_wait_init(struct zygote_wait *wait, zygote_wait_fn *done, void *ctx);
/* Any time. A machine that comes afterwards is killed and reaped. */
void zygote_wait_cancel(struct zygote_wait *wait);

/* Asks for a child like proc_spawn()'s of SPEC, whose before_exec is confine_child(); SPEC is
 * borrowed for the call. Its timers wait until it has sent something on ANSWER_FD
 * (zygote/standstill.h); -1: they do not. 0: WAIT will be told. -EAGAIN: not by the zygote, now
 * or ever. */
int zygote_spawn(struct zygote *zygote, const struct proc_spec *spec, int answer_fd,
                 struct zygote_wait *wait);

/* A machine of its own came up, or never did: then it is given up unless another one has. */
void zygote_prove(struct zygote *zygote);
void zygote_doubt(struct zygote *zygote, const char *why);
