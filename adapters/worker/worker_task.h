/* worker_task.h - one run of the helper program worker-files: the work on a state's disk that
 * takes long (docs/workers.md). */
#pragma once

#include "loop.h"
#include "state_folder.h"

struct worker_task;

#define WORKER_TASK_WORDS_MAX 6
/* Exit status: the source is over the limit it was given, or has folders too deep in others. */
#define WORKER_TASK_TOO_LARGE 3
#define WORKER_TASK_TOO_DEEP 4

/* Borrowed for the call. */
struct worker_task_spec {
    const char *program;
    const char *words[WORKER_TASK_WORDS_MAX]; /* up to the first NULL */
    int lock_fd;                              /* inherited: the state stays locked meanwhile */
    int source_fd;                            /* becomes descriptor 3; -1: none */
};

/* Once, never from inside worker_task_start(). STATUS is the exit status, -1 when it did not
 * exit; ERRORS is the end of what it said on standard error. The task is freed right after. */
typedef void (*worker_task_done_fn)(void *ctx, int status, const char *errors);

/* 0 or -errno. */
int worker_task_start(struct loop *loop, const struct worker_task_spec *spec,
                      worker_task_done_fn done, void *ctx, struct worker_task **ret_task);
/* Kills it and all it started, if it still runs; no callback follows. NULL is fine. */
void worker_task_free(struct worker_task *task);
