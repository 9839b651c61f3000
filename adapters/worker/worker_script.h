/* worker_script.h - one script of a worker in its VM (contract 12.2): `/bin/sh -e -c TEXT` in
 * /workspace, its output into the log and, when wanted, into tails for `partial`. */
#pragma once

#include "capture.h"
#include "sandbox.h"
#include "worker_log.h"

/* How the script came to its end. */
enum worker_script_end {
    SCRIPT_EXITED,    /* by itself; CODE is its exit code */
    SCRIPT_KILLED,    /* by worker_script_kill() */
    SCRIPT_TIMED_OUT, /* killed at its deadline */
    SCRIPT_LOST,      /* the VM or contact with it is lost, or it could not be begun: WHY */
};

struct worker_script_events {
    void (*started)(void *ctx); /* it runs; may be NULL; not when it was lost before */
    /* Once, last; the script is freed right after. */
    void (*ended)(void *ctx, enum worker_script_end end, int32_t code, const char *why);
};

/* All borrowed: TEXT and ENV for the call, the rest until the end. */
struct worker_script_spec {
    const char *text;
    const struct text_list *env; /* over that of the VM */
    uint64_t timeout_ms;         /* 0: none */
    struct worker_log *log;      /* NULL: none */
    struct capture *captures;    /* two, of stdout and stderr; NULL: none */
};

struct worker_script;

/* In a VM that is ready. -1 (S300): not begun, no callback follows. No callback comes from
 * inside this call. */
int worker_script_start(struct sandbox *sandbox, const struct worker_script_spec *spec,
                        const struct worker_script_events *events, void *ctx,
                        struct worker_script **ret_script, struct sandbox_error *err);
/* SIGTERM to its processes. */
void worker_script_terminate(struct worker_script *script);
/* SIGKILL to its whole tree; `ended` follows in at most WORKER_SCRIPT_KILL_MS. */
#define WORKER_SCRIPT_KILL_MS 2000u
void worker_script_kill(struct worker_script *script);
/* Forgets it, no callback follows. NULL is fine. */
void worker_script_free(struct worker_script *script);
