/* mailbox.h - the host's end of the memory that a machine's disk for bulk is made of
 * (docs/agent-protocol.md): which slots are whose, and the bytes in them.
 *
 * The guest can change all of it at any time: what it sends is copied once before anything
 * looks at it, and which slots are out is known here alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guest_hello;

struct mailbox {
    int fd;         /* -1: none */
    bool on;        /* the guest was told that it may be used */
    uint32_t free;  /* slots of ours that nobody uses, by bit */
    uint32_t out;   /* slots of ours that the guest has been told of, by bit */
    uint32_t taken; /* slots of the guest that we have emptied and not returned, by bit */
    bool used;      /* since mailbox_rest() was asked last */
    bool resting;   /* the memory was given back */
};

#define MAILBOX_NONE ((struct mailbox){ .fd = -1 })

/* The memory of a machine's disk, sealed so that its size stays. The descriptor or -errno. */
int mailbox_memory_new(void);

/* Consumes OWN_FD; no such memory: there is no mailbox. */
void mailbox_init(struct mailbox *mailbox, int own_fd);
void mailbox_done(struct mailbox *mailbox);
/* Whether the guest has the other end of it, of the same shape. */
bool mailbox_fits(const struct mailbox *mailbox, const struct guest_hello *hello);
void mailbox_turn_on(struct mailbox *mailbox);

/* Ours. -1: all are out. */
int mailbox_slot_take(struct mailbox *mailbox);
void mailbox_slot_give(struct mailbox *mailbox,
                       unsigned slot); /* the guest never heard of it */
void mailbox_slot_sent(struct mailbox *mailbox, unsigned slot);
/* 0 or -errno: there is no memory. */
int mailbox_put(struct mailbox *mailbox, unsigned slot, size_t at, const void *data,
                size_t size);
/* The guest has emptied SLOTS. NULL, or what is wrong with that (static text). */
const char *mailbox_returned(struct mailbox *mailbox, uint32_t slots);

/* The guest's: copies what it says is in its SLOT to DATA, which empties the slot. NULL, or
 * what is wrong. */
const char *mailbox_get(struct mailbox *mailbox, unsigned slot, void *data, size_t size);
bool mailbox_owes(const struct mailbox *mailbox);      /* some were emptied */
bool mailbox_owes_much(const struct mailbox *mailbox); /* worth waking the guest for */
uint32_t mailbox_take_owed(struct mailbox *mailbox);

/* To be asked now and then while it is not resting: whether nothing was moved since the last
 * time. The memory of our slots is given back then, also of those that return later; the guest
 * gives back that of its own, which it may be filling. */
bool mailbox_rest(struct mailbox *mailbox);
