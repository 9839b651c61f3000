/* worker.h - one worker VM as callers see it: who it is, its start script, its restarts, its
 * end (contract 12.2, docs/workers.md). */
#pragma once

#include "worker_state.h"

/* worker_set_state() alone moves it. */
enum worker_state {
    WORKER_STARTING, /* the VM is on its way; callers: starting */
    WORKER_RUNNING,  /* the start script runs; running */
    WORKER_WAITING,  /* it failed and is run again when the timer fires; starting */
    WORKER_STOPPING, /* SIGTERM was sent, the timer leads to SIGKILL; running */
    WORKER_ENDING,   /* no script runs, the VM is being ended; running */
    WORKER_STUCK,  /* the VM could not be killed: it holds its key, a stop tries again; running
                    */
    WORKER_EXITED, /* off, without a key, remembered; exited */
    WORKER_STATE_MAX
};

/* Runs that failed in a row until the worker is given up; the pauses are 1, 2, 4, 8, 16 s. */
#define WORKER_RESTARTS_MAX 5u
#define WORKER_RESTART_MS 1000u
#define WORKER_STEADY_MS 60000u /* a run this long makes earlier failures forgotten */

/* A worker::stop that waits for the end. */
struct worker_stop {
    struct list node;
    struct request *request;
};

struct worker {
    struct list node; /* in workers->all */
    struct workers *workers;
    struct worker_key *key; /* NULL: it does not hold one */
    enum worker_state state;
    char id[UUID_TEXT_BYTES];
    char instance[STATE_INSTANCE_BYTES];
    char state_key[STATE_KEY_BYTES];
    char *name;
    struct token token;
    int64_t started_at; /* Unix seconds */
    bool has_exit_code;
    int32_t exit_code;
    uint32_t restarts;
    uint64_t run_ms;   /* when the script that runs began */
    uint64_t ended_ms; /* when it was EXITED */
    struct worker_log log;

    char *script_text;
    struct text_list env; /* manifest, then request */
    struct state_folder folder;
    char *data_path, *source_path;
    struct machine_lasting lasting;
    struct worker_vm *vm;
    struct worker_script *script;
    struct loop_timer *timer;
    struct list stops; /* struct worker_stop */
    bool forget;       /* it was stopped: nothing of it is remembered */

    /* While STARTING: told when the script runs, or with what kept it from running. */
    void (*begun)(void *ctx, struct sandbox_error *err);
    void *begun_ctx;
};

/* Borrowed for the call. */
struct worker_spec {
    struct request *request; /* of worker::start */
    const struct source_folder *source;
    const char *folder; /* where its log may lie */
};

/* STARTING, holding KEY. NULL: no memory. */
struct worker *worker_new(struct worker_key *key, const struct worker_spec *spec);
/* Takes the locked FOLDER over, boots the VM and runs the start script. BEGUN once, perhaps
 * from inside the call; with an error the worker is gone (freed) right after, or STUCK. */
void worker_boot(struct worker *worker, struct request *request, const char *image,
                 uint32_t cpus, uint32_t memory_mb, struct state_folder *own_folder,
                 void (*begun)(void *ctx, struct sandbox_error *err), void *ctx);
/* Ends it: SIGTERM, after TIMEOUT_MS SIGKILL, then the VM. While STARTING: its VM at once. */
void worker_stop(struct worker *worker, uint64_t timeout_ms);
/* OWN_STOP is told when it is off. */
void worker_await_end(struct worker *worker, struct worker_stop *own_stop);
void worker_free(struct worker *worker);

/* What callers see. */
const char *worker_state_text(const struct worker *worker);
uint32_t worker_restarts(const struct worker *worker);
