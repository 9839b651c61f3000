/* bare_guest.h - programs in a bare machine with a network: the agent's calls without adapter
 * and router. */
#pragma once

#include "bare_machine.h"

struct bare_guest;

/* Tells the guest its address in QEMU's network. BARE is borrowed, but for its channel. */
int bare_guest_new(struct bare *bare, struct bare_guest **ret_guest);
void bare_guest_free(struct bare_guest *guest);
DEFINE_CLEANUP(struct bare_guest *, bare_guest_free)

/* Runs ARGV (NULL ends it) to its end; appends its output. -1: it failed, or does not end. */
int bare_guest_run(struct bare_guest *guest, const char *const *argv, struct buf *output);
