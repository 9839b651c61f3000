/* boot.h - from a place and an image to a sandbox that is ready: machine, greeting,
 * configuration (contract 5.1.2 row 7, 5.1.3). What machine and guest do later is noticed here
 * too and passed on to sandbox and stop. */
#pragma once

#include "sandbox.h"

struct boot_spec {
    uint32_t timeout_ms;
    uint32_t disk_mb;
    const struct env *env;                 /* of the create, borrowed until done */
    const struct machine_lasting *lasting; /* NULL: none; borrowed for the call */
};

/* Begins the machine of a sandbox that is creating and has its image. DONE once, never from
 * inside this call: ERR is NULL when the sandbox is ready; else S300 `never_ran` with the
 * console's tail (borrowed, may be moved), and the sandbox is gone, or unreachable when its
 * machine could not be killed. -1: not even begun; there is no machine. */
int boot_start(struct sandbox *sandbox, const struct boot_spec *spec,
               void (*done)(void *ctx, struct sandbox_error *err), void *ctx,
               struct sandbox_error *err);
/* Makes a boot that is under way fail. */
void boot_give_up(struct sandbox *sandbox, const char *why);
