/* state_folder.h - what one state_key has on disk, and who may touch it (docs/workers.md).
 *
 *   lock      held (flock) by the adapter and by every process it starts on the state
 *   holder    vm_id and instance of the VM the lock is held for
 *   state/    what is prepared: data (a disk or a folder) and its mark
 *   next/     the same while it is being prepared; takes the place of state/ in one step
 *   source, source.image   the packed source
 *
 * The descriptor of the lock is inherited by helpers and VM, so that it is free exactly when
 * none of them is left, however each of them ended. */
#pragma once

#include <stdbool.h>

#include "hash.h"

#define STATE_INSTANCE_BYTES 129 /* 128 and the NUL */
#define STATE_VM_ID_BYTES 37
#define STATE_IMAGE_BYTES 513

struct state_folder {
    char *path;
    int lock_fd; /* -1: not locked */
};

/* Says that the state is prepared, and for what. */
struct state_mark {
    char digest[HASH_SHA256_HEX_BYTES]; /* "": there is none, or no data */
    bool image_chosen;                  /* by the caller of prepare, not by the manifest */
    char image[STATE_IMAGE_BYTES];
};

struct state_holder {
    char vm_id[STATE_VM_ID_BYTES]; /* "": a prepare, or unknown */
    char instance[STATE_INSTANCE_BYTES];
};

/* ROOT/KEY, whether it is there or not. 0 or -ENOMEM. */
int state_folder_open(const char *root, const char *key, struct state_folder *ret_folder);
/* Root and folder, where they are missing. 0 or -errno. */
int state_folder_make(const struct state_folder *folder);
/* Gives the lock up, as far as this process holds it. */
void state_folder_done(struct state_folder *folder);

/* 0, -EWOULDBLOCK (somebody holds it) or another -errno. */
int state_folder_lock(struct state_folder *folder);
/* Under the lock. HOLDER may be NULL: nobody. 0 or -errno. */
int state_folder_set_holder(const struct state_folder *folder,
                            const struct state_holder *holder);
/* Without a readable file: empty texts. */
void state_folder_holder(const struct state_folder *folder, struct state_holder *ret_holder);
void state_folder_mark(const struct state_folder *folder, struct state_mark *ret_mark);

/* The mark as text of its file; the caller frees. NULL: no memory. */
char *state_mark_text(const struct state_mark *mark);
