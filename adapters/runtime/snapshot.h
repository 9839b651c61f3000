/* snapshot.h - the settings as they stood at one moment, shared and never changed.
 *
 * A reload makes a new snapshot; each call holds the one that was current when it came, so what
 * it borrows stays valid and new values hold for later calls only (contract 11.1). */
#pragma once

#include "settings.h"

struct snapshot;

/* Consumes SETTINGS, also on failure. NULL: no memory. The caller holds one reference. */
struct snapshot *snapshot_new(struct settings *own_settings);
struct snapshot *snapshot_ref(struct snapshot *snapshot); /* returns its argument */
void snapshot_unref(struct snapshot *snapshot);
DEFINE_CLEANUP(struct snapshot *, snapshot_unref)

/* Both borrowed from the snapshot. */
const struct settings *snapshot_settings(const struct snapshot *snapshot);
const struct adapter_settings *snapshot_adapter(const struct snapshot *snapshot);
