/* snapshot.c - settings with a count of those who hold them. The loop's thread only. */
#include "snapshot.h"

#include <assert.h>

struct snapshot {
    unsigned references;
    struct settings *settings;
};

struct snapshot *snapshot_new(struct settings *own_settings)
{
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

    if (!snapshot) {
        settings_free(own_settings);
        return NULL;
    }
    snapshot->references = 1;
    snapshot->settings = own_settings;
    return snapshot;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
    assert(snapshot->references > 0);
    snapshot->references++;
    return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    assert(snapshot->references > 0);
    if (--snapshot->references > 0)
        return;
    settings_free(snapshot->settings);
    free(snapshot);
}

const struct settings *snapshot_settings(const struct snapshot *snapshot)
{
    return snapshot->settings;
}

const struct adapter_settings *snapshot_adapter(const struct snapshot *snapshot)
{
    return &snapshot->settings->adapter;
}
