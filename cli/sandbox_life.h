/* sandbox_life.h - a sandbox from its create to its stop, with signals in between: none is left
 * that nobody knows.
 *
 * A create that a signal meets is waited for a while, so that its sandbox can be stopped. Then
 * the socket is closed, which cancels it; an answer that was on its way still counts, since it
 * comes ahead of the router's goodbye. */
#pragma once

#include "client.h"
#include "payload.h"
#include "progress.h"

/* All must be over so soon after a signal. */
#define SANDBOX_LIFE_END_MS 5000u
/* Of that, what the goodbye and the stop may take. */
#define SANDBOX_LIFE_FAREWELL_MS 1500u

struct sandbox_life {
    struct client *client;
    struct progress progress;
    const char *summary;  /* said when it is ready, on a terminal; NULL: nothing */
    uint32_t patience_ms; /* for the answer of create, after a signal */
    struct buf id;
    uint64_t end_ms; /* when all must be over; 0: no signal yet */
};

/* Calls sandbox::create with PAYLOAD (ended here). EXIT_CODE_DONE: life->id is there; else
 * there is no sandbox, and stderr said why. */
int sandbox_life_begin(struct sandbox_life *life, struct payload *payload);
/* Stops it and waits for that; a failure is told, and that is all. */
void sandbox_life_end(struct sandbox_life *life);
void sandbox_life_done(struct sandbox_life *life);
