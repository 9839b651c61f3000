/* registry.c - see registry.h. */
#include "registry.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fault.h"
#include "sandbox_state.h"
#include "table.h"

/* An ended sandbox. */
struct tombstone {
    char id[UUID_TEXT_BYTES];
    char why[SANDBOX_WHY_MAX];
    int64_t ended_at; /* Unix seconds */
    uint64_t ended_ms;
};

struct registry {
    struct adapter *adapter;
    struct list sandboxes; /* struct sandbox, oldest first */
    struct table *by_id;
    bool shut;
    struct tombstone *ended; /* ring of REGISTRY_ENDED_MAX; made at the first end */
    size_t ended_count;      /* ever; the ring's place is this modulo its size */
};

int registry_new(struct adapter *adapter, struct registry **ret_registry)
{
    _cleanup_(registry_freep)
    struct registry *registry = calloc(1, sizeof(*registry));
    int result;

    if (!registry)
        return -ENOMEM;
    registry->adapter = adapter;
    list_init(&registry->sandboxes);
    result = table_new(&registry->by_id);
    if (result < 0)
        return result;
    *ret_registry = take_ptr(registry);
    return 0;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    assert(list_empty(&registry->sandboxes));
    table_free(registry->by_id);
    free(registry->ended);
    free(registry);
}

size_t registry_count(const struct registry *registry)
{
    return table_count(registry->by_id);
}

void registry_shut(struct registry *registry)
{
    registry->shut = true;
}

/* The wall clock may have been set back, so the newest is not always the last. */
static void registry_insert(struct registry *registry, struct sandbox *sandbox)
{
    struct list *place = registry->sandboxes.previous;

    while (place != &registry->sandboxes &&
           LIST_ENTRY(place, struct sandbox, node)->created_at > sandbox->created_at)
        place = place->previous;
    list_prepend(place, &sandbox->node);
}

int registry_reserve(struct registry *registry, uint32_t max, const struct sandbox_spec *spec,
                     struct sandbox **ret_sandbox, struct sandbox_error *err)
{
    _cleanup_(sandbox_unrefp)
    struct sandbox *sandbox = NULL;

    if (registry->shut)
        return sandbox_error_set(err, S300,
                                 "the adapter is shutting down and makes no sandbox");
    if (registry_count(registry) >= max)
        return sandbox_error_set(
            err, S400,
            "max_concurrent_sandboxes is %u and %zu sandboxes are live: 1 more was "
            "requested",
            max, registry_count(registry));
    sandbox = sandbox_new(registry->adapter, registry, spec);
    if (!sandbox || table_put_text(registry->by_id, sandbox->id, sandbox) < 0)
        return sandbox_error_set(err, S300, "no memory for a further sandbox");
    registry_insert(registry, sandbox);
    *ret_sandbox = sandbox_ref(sandbox);
    (void)take_ptr(sandbox); /* the registry's reference */
    return 0;
}

static const struct tombstone *registry_tombstone(const struct registry *registry,
                                                  const char *id)
{
    uint64_t now_ms = loop_now_ms(adapter_loop(registry->adapter));
    size_t first = registry->ended_count > REGISTRY_ENDED_MAX
                       ? registry->ended_count - REGISTRY_ENDED_MAX
                       : 0;

    for (size_t i = registry->ended_count; i > first; i--) {
        const struct tombstone *stone = &registry->ended[(i - 1) % REGISTRY_ENDED_MAX];

        if (now_ms - stone->ended_ms >= REGISTRY_ENDED_KEEP_MS)
            return NULL; /* the rest is older still */
        if (strcmp(stone->id, id) == 0)
            return stone;
    }
    return NULL;
}

int registry_find(const struct registry *registry, const char *id, struct sandbox **ret_sandbox,
                  struct sandbox_error *err)
{
    struct sandbox *sandbox = table_get_text(registry->by_id, id);
    const struct tombstone *stone;
    char when[32];
    time_t ended_at;
    struct tm tm;

    if (sandbox) {
        *ret_sandbox = sandbox;
        return 0;
    }
    stone = registry_tombstone(registry, id);
    if (!stone)
        return sandbox_error_set(err, S002, "sandbox %s does not exist", id);
    ended_at = (time_t)stone->ended_at;
    (void)gmtime_r(&ended_at, &tm);
    (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    return sandbox_error_set(err, S004, "sandbox %s has ended: %s, at %s", id, stone->why,
                             when);
}

struct sandbox *registry_next(const struct registry *registry, const struct sandbox *after)
{
    const struct list *next = after ? after->node.next : registry->sandboxes.next;

    if (next == &registry->sandboxes)
        return NULL;
    return CONTAINER_OF(next, struct sandbox, node);
}

/* Without memory for the ring the end is forgotten: later calls get S002. */
static void registry_remember(struct registry *registry, const struct sandbox *sandbox)
{
    struct tombstone *stone;

    if (!registry->ended)
        registry->ended = calloc(REGISTRY_ENDED_MAX, sizeof(*registry->ended));
    if (!registry->ended)
        return;
    stone = &registry->ended[registry->ended_count++ % REGISTRY_ENDED_MAX];
    memcpy(stone->id, sandbox->id, sizeof(stone->id));
    memcpy(stone->why, sandbox->why, sizeof(stone->why));
    stone->ended_at = fault_wall_seconds(registry->adapter);
    stone->ended_ms = loop_now_ms(adapter_loop(registry->adapter));
}

void registry_bury(struct registry *registry, struct sandbox *sandbox)
{
    assert(sandbox->state == SANDBOX_GONE);
    registry_remember(registry, sandbox);
    (void)table_remove_text(registry->by_id, sandbox->id);
    list_remove(&sandbox->node);
    sandbox_unref(sandbox);
}
