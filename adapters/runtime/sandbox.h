/* sandbox.h - one sandbox: who it is, its state, its exec slots, its idle clock, and those who
 * wait for it (contract 4.2, 5.2.4, 10).
 *
 * Its machine and link are moved by boot.c and stop.c; which sandboxes there are is
 * registry.c's business. A sandbox never reads a machine's state; the machine tells it. */
#pragma once

#include "agent_link.h"
#include "backend.h"
#include "list.h"
#include "uuid.h"

struct sandbox;
struct registry; /* registry.h */

/* As callers see it. sandbox_set_state() alone moves it. */
enum sandbox_state {
    SANDBOX_CREATING,    /* place reserved; image, machine, guest are on their way */
    SANDBOX_READY,       /* served */
    SANDBOX_UNREACHABLE, /* machine alive, guest agent silent */
    SANDBOX_STOPPING,    /* being ended, for whatever cause */
    SANDBOX_GONE,        /* machine gone, place free, out of the registry; the object stays for
                            those who hold it */
    SANDBOX_STATE_MAX
};

struct sandbox_spec {
    const char *image; /* as requested */
    const char *name;  /* NULL: none */
    uint32_t cpus;
    uint32_t memory_mb;
    uint32_t disk_mb; /* limit of the writable layer */
    bool network;
    uint64_t idle_timeout_secs;
};

#define SANDBOX_WHY_MAX 512

struct sandbox *sandbox_ref(struct sandbox *sandbox); /* returns its argument */
void sandbox_unref(struct sandbox *sandbox);
DEFINE_CLEANUP(struct sandbox *, sandbox_unref)

const char *sandbox_id(const struct sandbox *sandbox);
struct loop *sandbox_loop(const struct sandbox *sandbox);
enum sandbox_state sandbox_state(const struct sandbox *sandbox);
const char *sandbox_state_name(enum sandbox_state state);
const struct sandbox_spec *sandbox_spec(const struct sandbox *sandbox);
int64_t sandbox_created_at(const struct sandbox *sandbox); /* Unix seconds */
uint32_t sandbox_execs(const struct sandbox *sandbox);     /* in flight */

/* While creating, before its boot: the image it is made from, one reference. */
void sandbox_set_image(struct sandbox *sandbox, const struct image *own_image);

/* Contract 4.2: S001 that quotes what was given. */
int sandbox_read_id(const char *text, char ret_id[UUID_TEXT_BYTES], struct sandbox_error *err);
/* S004 when it is being stopped. */
int sandbox_check_open(const struct sandbox *sandbox, struct sandbox_error *err);

/* A call that waits while the sandbox is creating; lives in its owner. */
struct sandbox_wait {
    struct list node;
    /* ERR is NULL when it is ready; else S300 says why not (borrowed, may be moved). */
    void (*done)(void *ctx, struct sandbox_error *err);
    void *ctx;
};
void sandbox_wait_init(struct sandbox_wait *wait,
                       void (*done)(void *ctx, struct sandbox_error *err), void *ctx);
/* Ready or unreachable: DONE from inside this call. Creating: when it is over. */
void sandbox_when_ready(struct sandbox *sandbox, struct sandbox_wait *wait);
void sandbox_wait_cancel(struct sandbox_wait *wait); /* no callback follows */

/* Somebody who must know when the sandbox is gone; lives in its owner. */
struct sandbox_watch {
    struct list node;
    void (*gone)(void *ctx, const char *why);
    void *ctx;
};
void sandbox_watch_init(struct sandbox_watch *watch, void (*gone)(void *ctx, const char *why),
                        void *ctx);
void sandbox_watch_begin(struct sandbox *sandbox, struct sandbox_watch *watch);
void sandbox_watch_end(struct sandbox_watch *watch);

/* Contract 5.2.4. CAP 0 acts as 1; S003 when all are taken. Each take is followed by exactly
 * one give; both refresh the idle clock. */
int sandbox_take_slot(struct sandbox *sandbox, uint32_t cap, struct sandbox_error *err);
void sandbox_give_slot(struct sandbox *sandbox);
uint32_t sandbox_slots_free(const struct sandbox *sandbox, uint32_t cap);

/* Contract 10. */
void sandbox_touch(struct sandbox *sandbox);
uint64_t sandbox_idle_secs(const struct sandbox *sandbox);

/* agent_call() of a sandbox that answers; else -1 with S300. */
int sandbox_call(struct sandbox *sandbox, enum guest_operation_id operation,
                 const void *request, const struct agent_call_events *events, void *ctx,
                 struct agent_call **ret_call, struct sandbox_error *err);

/* Why a call lost its guest: the sandbox's end if it is ending, else REASON of the link. */
const char *sandbox_lost_cause(const struct sandbox *sandbox, const char *reason);
