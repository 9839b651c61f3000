/* worker_state.h - what the files worker*.c of this library share; nobody else includes it. */
#pragma once

#include "adapter.h"
#include "registry.h"
#include "request.h"
#include "source_folder.h"
#include "state_folder.h"
#include "token.h"
#include "uuid.h"
#include "worker_log.h"
#include "worker_script.h"
#include "worker_task.h"
#include "worker_vm.h"
#include "workers.h"

#define STATE_KEY_BYTES 129

#define WORKERS_EXITED_MAX 1024u
#define WORKERS_EXITED_KEEP_MS (60u * 60 * 1000)

struct worker;
struct worker_job;

/* All of it; workers.c. */
struct workers {
    struct adapter *adapter;
    struct loop *loop;
    const char *form; /* of the states, as worker-files calls it */
    char *program;    /* worker-files */
    struct registry *registry;
    struct list all;  /* struct worker, oldest first */
    struct list keys; /* struct worker_key */
    uint32_t places;  /* taken: live workers, and prepares */
    unsigned exited_count;
    struct list calls;        /* struct worker_call that are judged in the next turn */
    struct loop_notice judge; /* deferred */

    bool ending;                /* the adapter ends: nothing begins any more */
    void (*stopped)(void *ctx); /* told when all has ended; NULL: it was, or nobody asked */
    void *stopped_ctx;
    struct loop_notice check; /* whether all has ended */
};

/* A state_key that somebody is concerned with. */
struct worker_key {
    struct list node;
    struct workers *workers;
    char text[STATE_KEY_BYTES];
    struct worker *live;    /* the worker that holds it; NULL: none */
    struct worker_job *job; /* prepare or start under way; NULL: none */
    struct list waiting;    /* struct worker_call */
};

/* A prepare or start from its arrival to its job. */
struct worker_call {
    struct list node;
    struct workers *workers;
    struct request *request;
    uint64_t began_ms;
};

/* workers.c */

/* A reason for waiting calls to be judged anew has come: a job or a live worker is over. */
void worker_key_changed(struct worker_key *key);
/* The worker is EXITED: it is remembered for a while. */
void workers_remember(struct worker *worker);
void workers_forget(struct worker *worker);

/* worker_call.c: the checks of prepare and start, in order. Consumed. */
void worker_call_judge(struct worker_call *own_call);
