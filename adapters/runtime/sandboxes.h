/* sandboxes.h - all sandboxes of the adapter as one thing: registry, idle tick, shutdown.
 *
 * sandboxes_new(), _stop_all() and _free() are declared in handlers.h. */
#pragma once

#include "held_reads.h"
#include "live_output.h"
#include "registry.h"

struct sandboxes;

struct registry *sandboxes_registry(const struct sandboxes *sandboxes);
struct held_reads *sandboxes_held_reads(struct sandboxes *sandboxes);
struct live_outputs *sandboxes_live_outputs(struct sandboxes *sandboxes);
