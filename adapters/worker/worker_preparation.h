/* worker_preparation.h - setup and install of a state: one VM on next/ that runs both and is
 * powered off again (contract 12.2, docs/workers.md). */
#pragma once

#include "manifest.h"
#include "registry.h"
#include "request.h"
#include "state_folder.h"
#include "worker_log.h"

/* All is borrowed until it is done. */
struct worker_preparation_spec {
    struct request *request; /* settings and progress */
    struct registry *registry;
    const char *state_key; /* for messages */
    const struct state_folder *folder;
    const struct manifest *manifest;
    const struct env *env; /* of the request */
    const char *image;
    uint32_t cpus;
    uint32_t memory_mb;
    uint64_t timeout_ms;    /* of both scripts together */
    struct worker_log *log; /* NULL: none */
};

struct worker_preparation;

/* Once, never from inside a call; free the preparation in it or later. ERR is NULL when both
 * scripts ended well and what they wrote is on the disk; else S506, S101, S102 or S300
 * (borrowed, may be moved). OFF: the VM is gone; else it could not be killed and still holds
 * the state's lock. */
typedef void (*worker_preparation_done_fn)(void *ctx, struct sandbox_error *err, bool off);

/* Whether the manifest has a script to run. */
bool worker_preparation_needed(const struct manifest *manifest);
/* -1 (S300): not begun, no callback follows. */
int worker_preparation_start(const struct worker_preparation_spec *spec,
                             worker_preparation_done_fn done, void *ctx,
                             struct worker_preparation **ret_preparation,
                             struct sandbox_error *err);
/* Ends it as soon as it can be. */
void worker_preparation_stop(struct worker_preparation *preparation, const char *why);
/* Only when it is done, or when the process ends. NULL is fine. */
void worker_preparation_free(struct worker_preparation *preparation);
