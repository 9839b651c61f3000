/* reaper.h - the tick that stops idle sandboxes (contract 10). */
#pragma once

#include "registry.h"

#define REAPER_TICK_MS 10000u
#define REAPER_LATE_MS 5000u /* behind its time by as much, a tick is left out */

struct reaper;

int reaper_new(struct adapter *adapter, struct registry *registry, struct reaper **ret_reaper);
void reaper_free(struct reaper *reaper);
DEFINE_CLEANUP(struct reaper *, reaper_free)

/* One tick, now. */
void reaper_tick(struct reaper *reaper);
