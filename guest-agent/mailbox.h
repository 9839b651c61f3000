/* mailbox.h - the guest's end of the disk for bulk (docs/agent-protocol.md): its slots, and the
 * bytes in them.
 *
 * The disk is read and written past the page cache, so our processor copies nothing: addresses
 * are those of whole pages, and sizes are rounded up to MAILBOX_ALIGN_BYTES, for which buffers
 * have room. Slots of ours are taken and filled on any thread; the rest is the loop's. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent_frame.h"

#define MAILBOX_ALIGN_BYTES 512u

struct mailbox {
    int fd;           /* -1: none */
    atomic_bool on;   /* the host allows it */
    atomic_uint free; /* slots of ours that nobody uses, by bit */
    uint32_t taken;   /* slots of the host that were emptied and not returned, by bit */
    uint8_t *bounce;  /* one slot; the loop's. NULL: not needed yet */
    int relay[2];     /* a pipe of ours, empty between calls; the loop's. -1: not needed yet */
};

/* Consumes OWN_FD (-1: none), a disk or a file with room for all slots. */
void mailbox_init(struct mailbox *mailbox, int own_fd);
void mailbox_done(struct mailbox *mailbox);
/* A CONFIGURE came; nobody uses a slot. */
void mailbox_turn(struct mailbox *mailbox, bool on);

bool mailbox_on(const struct mailbox *mailbox);

/* Ours. -1: none can be had. */
int mailbox_slot_take(struct mailbox *mailbox);
void mailbox_slot_give(struct mailbox *mailbox, int slot);
/* 0 or -errno. */
int mailbox_put(struct mailbox *mailbox, int slot, const void *data, size_t size);
/* Takes at most SIZE bytes of those that wait in PIPE: its pages go into the slot as they are,
 * without a copy, and its writers can go on meanwhile. How many, of which the first RET_PUT are
 * in the slot and the others, which the disk did not take so (pages that are not filled whole),
 * in the bounce. 0: none, read them; they are too few, or cannot be had so. -errno: some are
 * lost, the pipe is of no use. */
ssize_t mailbox_put_pipe(struct mailbox *mailbox, int slot, int pipe, size_t size,
                         size_t *ret_put);
/* The host has emptied SLOTS. IDLE: their memory is given back. -EPROTO: they were not out. */
int mailbox_returned(struct mailbox *mailbox, uint32_t slots, bool idle);

/* The host's. A SLOT came, whoever wants it: it is the host's again when that is told. -EPROTO:
 * it was not the host's to fill. */
int mailbox_claim(struct mailbox *mailbox, unsigned slot);
/* What is in a claimed one. A TO that is not aligned, or whose ROOM is less than the rounded
 * SIZE, costs a copy. 0 or -errno. */
int mailbox_get(struct mailbox *mailbox, unsigned slot, size_t size, void *to, size_t room);
/* What is to be returned: as soon as it is worth it, or at all (FORCE). */
uint32_t mailbox_take_owed(struct mailbox *mailbox, bool force);

/* A slot's worth of whole pages for the loop's own use; it is what mailbox_get() copies by.
 * NULL: no memory. */
uint8_t *mailbox_bounce(struct mailbox *mailbox);
