/* worker_job.h - one worker::prepare or worker::start, from its last check to its answer
 * (contract 12.2, docs/workers.md): lock, packed source, preparation if one is due, VM. */
#pragma once

#include "worker_state.h"

/* How long the lock is waited for: the VM of an adapter that was killed needs a moment to die.
 */
#define WORKER_LOCK_MS 5000u
#define WORKER_LOCK_RETRY_MS 50u

/* The deadline of both scripts where a start has to prepare. */
#define WORKER_PREPARE_MS 600000u

struct worker_job_spec {
    struct worker_key *key;
    struct worker_call *own_call;     /* answered by the job */
    struct source_folder *own_source; /* moved out */
    const struct state_mark *mark;    /* the state is to have; names the image */
    uint32_t cpus;
    uint32_t memory_mb;
};

/* A place was taken; the job gives it back. Answers the call, never from inside this call
 * unless there is no memory. */
void worker_job_begin(const struct worker_job_spec *spec);
/* Ends it as soon as it can; its call fails with S300. */
void worker_job_abort(struct worker_job *job, const char *why);
