/* progress.h - one line on stderr that says which step is under way, how far it is and for how
 * long; only when stderr is a terminal, else nothing at all is written. */
#pragma once

#include "loop.h"
#include "span.h"

struct progress {
    struct loop *loop;
    struct loop_timer *timer; /* NULL: no terminal, or not begun */
    uint64_t begun_ms;
    const char *step;
    uint64_t step_begun_ms;
    bool has_bytes;
    uint64_t done_bytes;
    uint64_t total_bytes;      /* 0: unknown */
    uint64_t bytes_per_second; /* 0: unknown */
};

/* STEP: a static text. A failure is silence. */
void progress_begin(struct progress *progress, struct loop *loop, const char *step);
void progress_step(struct progress *progress, const char *step);
/* Of the step. It is drawn a few times a second at most. */
void progress_bytes(struct progress *progress, uint64_t done_bytes, uint64_t total_bytes);
/* An event of sandbox::create; fits client_call.progress. */
void progress_event(void *progress, struct span event);
/* Wipes the line; SUMMARY (or NULL) stays, with the time it took. */
void progress_end(struct progress *progress, const char *summary);
