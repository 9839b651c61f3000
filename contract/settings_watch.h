/* settings_watch.h - notices that the settings file may have changed: SIGHUP, or a change of
 * the file itself (contract 11.1).
 *
 * The folder is watched, not the file: editors and package managers replace files by rename. A
 * file that is a link is watched in both folders. */
#pragma once

#include "loop.h"

struct settings_watch;

/* CHANGED comes a moment after the last of a burst of changes. Without inotify SIGHUP still
 * works, and that is logged. 0 or -errno. */
int settings_watch_new(struct loop *loop, const char *path, void (*changed)(void *ctx),
                       void *ctx, struct settings_watch **ret_watch);
void settings_watch_free(struct settings_watch *watch);
DEFINE_CLEANUP(struct settings_watch *, settings_watch_free)
