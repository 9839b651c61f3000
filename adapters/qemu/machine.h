/* machine.h - one machine as the runtime sees it, however it comes about: taken from the pool,
 * cloned, or booted.
 *
 * States: waiting (for a template, the boot files, its turn) -> starting (its vm begins) -> up
 * (the agent's socket was handed out) -> gone. A clone that cannot be restored boots cold. */
#pragma once

#include "backend.h"

/* backend_ops */
int machine_start(struct backend *backend, const struct machine_spec *spec,
                  const struct machine_events *events, void *ctx, struct machine **ret_machine,
                  struct sandbox_error *err);
int machine_kill(struct machine *machine, struct sandbox_error *err);
void machine_ready(struct machine *machine);
void machine_settled(struct machine *machine);
void machine_wanted(struct machine *machine);
int64_t machine_last_payload(const struct machine *machine);
uint64_t machine_disk_bytes(const struct machine *machine);
void machine_free(struct machine *machine);
