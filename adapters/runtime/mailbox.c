/* mailbox.c - see mailbox.h. Read and written by system calls, not mapped: a page that cannot
 * be had is an error then and no signal, and nothing in between looks at a byte twice. */
#include "mailbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_frame.h"
#include "tables.h"

#define ALL_SLOTS ((uint32_t)((1ull << AGENT_MAILBOX_SLOTS) - 1))
/* Behind those of the guest. */
#define OUR_SLOTS_OFFSET ((off_t)AGENT_MAILBOX_SLOTS * AGENT_MAILBOX_SLOT_BYTES)

int mailbox_memory_new(void)
{
    _cleanup_close_ int fd = memfd_create("sandbox-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, AGENT_MAILBOX_BYTES) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    return take_fd(&fd);
}

void mailbox_init(struct mailbox *mailbox, int own_fd)
{
    _cleanup_close_ int fd = own_fd;
    struct stat status;

    *mailbox = MAILBOX_NONE;
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size == (off_t)AGENT_MAILBOX_BYTES)
        mailbox->fd = take_fd(&fd);
}

void mailbox_done(struct mailbox *mailbox)
{
    closep(&mailbox->fd);
    mailbox->on = false;
}

bool mailbox_fits(const struct mailbox *mailbox, const struct guest_hello *hello)
{
    return mailbox->fd >= 0 && hello->has_mailbox_slots && hello->has_mailbox_slot_bytes &&
           hello->mailbox_slots == AGENT_MAILBOX_SLOTS &&
           hello->mailbox_slot_bytes == AGENT_MAILBOX_SLOT_BYTES;
}

void mailbox_turn_on(struct mailbox *mailbox)
{
    mailbox->on = true;
    mailbox->free = ALL_SLOTS;
    mailbox->out = 0;
    mailbox->taken = 0;
    mailbox->resting = true;
}

static void mailbox_use(struct mailbox *mailbox)
{
    mailbox->used = true;
    mailbox->resting = false;
}

static void give_memory_back(const struct mailbox *mailbox, uint32_t slots)
{
    for (unsigned slot = 0; slot < AGENT_MAILBOX_SLOTS; slot++)
        if (slots & 1u << slot)
            (void)fallocate(mailbox->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            OUR_SLOTS_OFFSET + (off_t)slot * AGENT_MAILBOX_SLOT_BYTES,
                            AGENT_MAILBOX_SLOT_BYTES); /* else it stays, bounded */
}

/* Ours. The lowest first, so that little memory is touched. */

int mailbox_slot_take(struct mailbox *mailbox)
{
    unsigned slot;

    if (!mailbox->on || mailbox->free == 0)
        return -1;
    slot = (unsigned)__builtin_ctz(mailbox->free);
    mailbox->free &= ~(1u << slot);
    return (int)slot;
}

void mailbox_slot_give(struct mailbox *mailbox, unsigned slot)
{
    mailbox->free |= 1u << slot;
}

void mailbox_slot_sent(struct mailbox *mailbox, unsigned slot)
{
    mailbox->out |= 1u << slot;
}

int mailbox_put(struct mailbox *mailbox, unsigned slot, size_t at, const void *data,
                size_t size)
{
    const off_t offset = OUR_SLOTS_OFFSET + (off_t)slot * AGENT_MAILBOX_SLOT_BYTES + (off_t)at;
    ssize_t written;

    mailbox_use(mailbox);
    do
        written = pwrite(mailbox->fd, data, size, offset);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return -errno;
    return (size_t)written == size ? 0 : -ENOSPC;
}

const char *mailbox_returned(struct mailbox *mailbox, uint32_t slots)
{
    if (!mailbox->on)
        return "slots of a mailbox that is not in use";
    if (slots & ~mailbox->out)
        return "a slot returned that was not out";
    mailbox->out &= ~slots;
    mailbox->free |= slots;
    if (mailbox->resting)
        give_memory_back(mailbox, slots);
    return NULL;
}

/* The guest's. */

const char *mailbox_get(struct mailbox *mailbox, unsigned slot, void *data, size_t size)
{
    ssize_t got;

    if (!mailbox->on)
        return "a slot of a mailbox that is not in use";
    if (mailbox->taken & 1u << slot)
        return "a slot that is not the guest's to fill";
    mailbox->taken |= 1u << slot;
    mailbox_use(mailbox);
    do
        got = pread(mailbox->fd, data, size, (off_t)slot * AGENT_MAILBOX_SLOT_BYTES);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)size ? NULL : "a slot that cannot be read";
}

bool mailbox_owes(const struct mailbox *mailbox)
{
    return mailbox->taken != 0;
}

bool mailbox_owes_much(const struct mailbox *mailbox)
{
    return (unsigned)__builtin_popcount(mailbox->taken) >= AGENT_MAILBOX_RETURN_SLOTS;
}

uint32_t mailbox_take_owed(struct mailbox *mailbox)
{
    const uint32_t taken = mailbox->taken;

    mailbox->taken = 0;
    return taken;
}

bool mailbox_rest(struct mailbox *mailbox)
{
    mailbox->resting = !mailbox->used;
    mailbox->used = false;
    if (mailbox->resting)
        give_memory_back(mailbox, mailbox->free); /* the rest may not have been read yet */
    return mailbox->resting;
}
