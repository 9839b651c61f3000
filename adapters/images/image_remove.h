/* image_remove.h - taking folders of installs away again, in the background.
 *
 * An install works in <digest>.tmp-XXXXXX while it holds the lock <digest>.lock, so a folder of
 * that form whose lock is free was left behind by a killed process. */
#pragma once

#include "list.h"
#include "loop.h"
#include "tables.h"

#define IMAGE_TEMPORARY_MARK ".tmp-"

struct image_removal;

/* Removes PATHS (absolute) with all below. DONE (may be NULL) is called once, whether or not it
 * worked, never from inside the call. ALL is the list it stays in meanwhile. */
int image_remove(struct loop *loop, const struct text_list *paths, struct list *all,
                 void (*done)(void *ctx), void *ctx);
/* Renames the image folder PATH to what counts as a leftover; *ret_path is the caller's. 0 or
 * -errno. */
int image_move_aside(const char *path, char **ret_path);
/* The same for all leftovers in the cache DIRECTORY. OWN_DIGEST (NULL: none) is one whose lock
 * the caller holds and that has no folder yet. */
int image_remove_leftovers(struct loop *loop, const char *directory, const char *own_digest,
                           struct list *all);
/* The process ends: forgets them; what is still there is found at the next start. */
void image_removals_kill(struct list *all);
