/* progress.h - one line on stderr that says which step is under way and for how long; only when
 * stderr is a terminal, else nothing at all is written. */
#pragma once

#include "loop.h"
#include "span.h"

#define PROGRESS_TEXT_MAX_BYTES 128

struct progress {
    struct loop *loop;
    struct loop_timer *timer; /* NULL: no terminal, or not begun */
    uint64_t begun_ms;
    char text[PROGRESS_TEXT_MAX_BYTES];
};

/* A failure is silence. */
void progress_begin(struct progress *progress, struct loop *loop, const char *text);
void progress_step(struct progress *progress, const char *text);
void progress_bytes(struct progress *progress, const char *verb, uint64_t bytes);
/* An event of sandbox::create; fits client_call.progress. */
void progress_event(void *progress, struct span event);
/* Wipes the line; SUMMARY (or NULL) stays, with the time it took. */
void progress_end(struct progress *progress, const char *summary);
