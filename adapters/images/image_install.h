/* image_install.h - bringing one image to where it can be used: lock, check of what is there,
 * installer program, digests, sync, one rename (docs/images.md).
 *
 * Owns the child processes, the lock and the temporary folder. When it has ended, well or not,
 * it cleans up by itself and is gone; nothing but the finished folder is left. */
#pragma once

#include "install_output.h"
#include "install_plan.h"
#include "list.h"
#include "loop.h"

struct image_install;

/* What goes on in the background of a cache. */
struct image_jobs {
    struct list installs; /* struct image_install, until the last trace is gone */
    struct list removals; /* struct image_removal */
};

struct image_install_failure {
    bool missing; /* not there or damaged, and it might not be installed */
    char step[INSTALL_STAGE_MAX];
    char cause[2048];
};

struct image_install_events {
    void (*progress)(void *ctx, const struct image_progress *progress);
    /* Once, last, never from inside image_install_begin(). FAILURE NULL: the image is there;
     * INSTALLED: by this install. */
    void (*ended)(void *ctx, bool installed, const struct image_install_failure *failure);
};

/* SPEC is copied, EVENTS and JOBS borrowed. 0 or -errno. */
int image_install_begin(struct loop *loop, const struct image_install_spec *spec,
                        struct image_jobs *jobs, const struct image_install_events *events,
                        void *ctx, struct image_install **ret_install);
/* Somebody waits for it who may have it installed, whatever SPEC said. */
void image_install_permit(struct image_install *install);
/* Nobody waits for it any more: kills it; no callback follows. */
void image_install_abandon(struct image_install *install);
/* The process ends: kills and forgets everything; the next start sweeps up. */
void image_jobs_kill(struct image_jobs *jobs);
