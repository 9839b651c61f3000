/* disk_room.h - whether there is room for what the writable layers of all sandboxes may still
 * become. A layer is sparse, so its limit says what it may take, not what it takes. */
#pragma once

#include "adapter.h"
#include "error.h"
#include "settings.h"

/* S400 that names max_disk_mb when the sandboxes of ADAPTER, the new one among them, may grow
 * by more than disk_promise_percent of what is free. */
int disk_room_check(struct adapter *adapter, const struct adapter_settings *settings,
                    struct sandbox_error *err);

/* The judgement alone: COUNT sandboxes may grow by NEEDED_BYTES, FREE_BYTES are free. */
int disk_room_judge(const struct adapter_settings *settings, const char *directory,
                    uint64_t needed_bytes, size_t count, uint64_t free_bytes,
                    struct sandbox_error *err);
