/* list.c - the operation `list` (contract 5.3). Never waits for anything. */
#include <errno.h>

#include "fault.h"
#include "handlers.h"
#include "sandboxes.h"

static void fill_entry(const struct sandbox *sandbox, uint32_t cap, int64_t now,
                       struct list_entry *entry)
{
    const struct sandbox_spec *spec = sandbox_spec(sandbox);
    int64_t created_at = sandbox_created_at(sandbox);

    *entry = (struct list_entry){
        .sandbox_id = (char *)sandbox_id(sandbox),
        .name = (char *)spec->name,
        .has_name = spec->name != NULL,
        .image = (char *)spec->image,
        .age_secs = now > created_at ? (uint64_t)(now - created_at) : 0,
        .exec_in_progress = sandbox_execs(sandbox) > 0,
        .exec_in_flight = sandbox_execs(sandbox),
        .exec_slots_free = sandbox_slots_free(sandbox, cap),
        .created_at = created_at,
        .idle_secs = sandbox_idle_secs(sandbox),
        .cpus = spec->cpus,
        .memory_mb = spec->memory_mb,
        .network = spec->network,
        .status = (char *)sandbox_state_name(sandbox_state(sandbox)),
    };
}

/* The entries borrow from the sandboxes, so only the array itself is freed. Without memory for
 * it the list is cut: this operation has no error. */
void handle_list(struct request *request)
{
    struct registry *registry = sandboxes_registry(adapter_sandboxes(request_adapter(request)));
    uint32_t cap = request_settings(request)->max_concurrent_exec_per_sandbox;
    int64_t now = fault_wall_seconds(request_adapter(request));
    size_t count = registry_count(registry);
    _cleanup_free_ struct list_entry *entries = calloc(count > 0 ? count : 1, sizeof(*entries));
    struct list_reply reply = { .items = { .items = entries } };

    for (struct sandbox *sandbox = registry_next(registry, NULL); sandbox && entries;
         sandbox = registry_next(registry, sandbox))
        fill_entry(sandbox, cap, now, &entries[reply.items.count++]);
    request_reply(request, &reply);
}
