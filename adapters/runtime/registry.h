/* registry.h - which sandboxes there are and which have ended (contract 4.2, 5.1.2).
 *
 * Owns one reference of each live sandbox, the count of places, and the memory of the last
 * ends.
 */
#pragma once

#include "adapter.h"
#include "sandbox.h"

#define REGISTRY_ENDED_MAX 1024u
#define REGISTRY_ENDED_KEEP_MS (60u * 60 * 1000)

struct registry;

int registry_new(struct adapter *adapter, struct registry **ret_registry); /* 0 or -errno */
void registry_free(struct registry *registry);
DEFINE_CLEANUP(struct registry *, registry_free)

/* Check 2 of contract 5.1.2 and the reservation in one step: S400 when MAX sandboxes are live.
 * *ret_sandbox is creating; one reference is the caller's. */
int registry_reserve(struct registry *registry, uint32_t max, const struct sandbox_spec *spec,
                     struct sandbox **ret_sandbox, struct sandbox_error *err);
/* From now on registry_reserve() refuses (the adapter ends). */
void registry_shut(struct registry *registry);

/* ID in canonical form. S002, or S004 with why and when; a sandbox that is being stopped is
 * found. Borrowed. */
int registry_find(const struct registry *registry, const char *id, struct sandbox **ret_sandbox,
                  struct sandbox_error *err);

size_t registry_count(const struct registry *registry);
/* Oldest first: by created_at, then order of creation. NULL starts, and ends. The one returned
 * may leave the registry before the next call only if its successor was fetched already. */
struct sandbox *registry_next(const struct registry *registry, const struct sandbox *after);

/* The sandbox is gone for the reason in its `why`: its place is free, its end remembered. The
 * registry's reference is dropped. */
void registry_bury(struct registry *registry, struct sandbox *sandbox);
