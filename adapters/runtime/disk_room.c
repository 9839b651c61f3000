/* disk_room.c - see disk_room.h. */
#include "disk_room.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

#include "registry.h"
#include "sandbox_state.h"
#include "sandboxes.h"

#define MIB (1024u * 1024u)

/* What the layer of SANDBOX may still become larger by. */
static uint64_t growth_of(const struct sandbox *sandbox, const struct backend_ops *ops)
{
    uint64_t limit_bytes = (uint64_t)sandbox->spec.disk_mb * MIB;
    uint64_t used_bytes = sandbox->machine ? ops->machine_disk_bytes(sandbox->machine) : 0;

    return used_bytes < limit_bytes ? limit_bytes - used_bytes : 0;
}

/* What disk_promise_percent would have to be. */
static uint64_t percent_for(uint64_t needed_bytes, uint64_t free_bytes)
{
    uint64_t percent_bytes = free_bytes / 100 > 0 ? free_bytes / 100 : 1;

    return (needed_bytes + percent_bytes - 1) / percent_bytes;
}

int disk_room_judge(const struct adapter_settings *settings, const char *directory,
                    uint64_t needed_bytes, size_t count, uint64_t free_bytes,
                    struct sandbox_error *err)
{
    uint64_t promise_bytes = free_bytes / 100 * settings->disk_promise_percent;

    if (needed_bytes <= promise_bytes)
        return 0;
    return sandbox_error_set(
        err, S400,
        "max_disk_mb %u: the writable layers of %zu sandboxes, this one included, may grow by "
        "%" PRIu64 " MiB, and of %" PRIu64 " MiB free in %s %u %% are promised to them; set a "
        "smaller max_disk_mb, or disk_promise_percent to %" PRIu64,
        settings->max_disk_mb, count, needed_bytes / MIB, free_bytes / MIB, directory,
        settings->disk_promise_percent, percent_for(needed_bytes, free_bytes));
}

int disk_room_check(struct adapter *adapter, const struct adapter_settings *settings,
                    struct sandbox_error *err)
{
    const struct backend_ops *ops = adapter_ops(adapter);
    struct registry *registry = sandboxes_registry(adapter_sandboxes(adapter));
    const char *directory = ops->scratch_directory
                                ? ops->scratch_directory(adapter_backend(adapter))
                                : NULL;
    uint64_t needed_bytes = 0;
    struct statvfs room;

    if (!directory)
        return 0;
    if (statvfs(directory, &room) < 0)
        return sandbox_error_set(err, S300, "%s: %s", directory, strerror(errno));
    for (struct sandbox *sandbox = registry_next(registry, NULL); sandbox;
         sandbox = registry_next(registry, sandbox))
        needed_bytes += growth_of(sandbox, ops);
    return disk_room_judge(settings, directory, needed_bytes, registry_count(registry),
                           (uint64_t)room.f_bavail * room.f_frsize, err);
}
