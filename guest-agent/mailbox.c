/* mailbox.c - see mailbox.h. */
#include "mailbox.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"

#define ALL_SLOTS ((1u << AGENT_MAILBOX_SLOTS) - 1)
/* Behind ours. */
#define HOST_SLOTS_OFFSET ((off_t)AGENT_MAILBOX_SLOTS * AGENT_MAILBOX_SLOT_BYTES)

static size_t round_up(size_t size)
{
    return (size + MAILBOX_ALIGN_BYTES - 1) / MAILBOX_ALIGN_BYTES * MAILBOX_ALIGN_BYTES;
}

static void relay_close(struct mailbox *mailbox)
{
    closep(&mailbox->relay[0]);
    closep(&mailbox->relay[1]);
}

void mailbox_init(struct mailbox *mailbox, int own_fd)
{
    *mailbox = (struct mailbox){ .fd = own_fd, .relay = { -1, -1 } };
    if (own_fd >= 0 && lseek(own_fd, 0, SEEK_END) < (off_t)AGENT_MAILBOX_BYTES)
        closep(&mailbox->fd);
}

void mailbox_done(struct mailbox *mailbox)
{
    closep(&mailbox->fd);
    relay_close(mailbox);
    if (mailbox->bounce)
        (void)munmap(mailbox->bounce, AGENT_MAILBOX_SLOT_BYTES); /* it is ours */
    mailbox->bounce = NULL;
}

void mailbox_turn(struct mailbox *mailbox, bool on)
{
    atomic_store(&mailbox->on, on && mailbox->fd >= 0);
    atomic_store(&mailbox->free, ALL_SLOTS);
    mailbox->taken = 0;
}

bool mailbox_on(const struct mailbox *mailbox)
{
    return atomic_load(&mailbox->on);
}

uint8_t *mailbox_bounce(struct mailbox *mailbox)
{
    void *data;

    if (mailbox->bounce)
        return mailbox->bounce;
    data = mmap(NULL, AGENT_MAILBOX_SLOT_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    return mailbox->bounce = data;
}

/* Ours. The lowest first, so that little of the host's memory is touched. */

int mailbox_slot_take(struct mailbox *mailbox)
{
    unsigned free = atomic_load(&mailbox->free);

    while (mailbox_on(mailbox) && free != 0) {
        const unsigned slot = (unsigned)__builtin_ctz(free);

        if (atomic_compare_exchange_weak(&mailbox->free, &free, free & ~(1u << slot)))
            return (int)slot;
    }
    return -1;
}

void mailbox_slot_give(struct mailbox *mailbox, int slot)
{
    (void)atomic_fetch_or(&mailbox->free, 1u << slot);
}

int mailbox_put(struct mailbox *mailbox, int slot, const void *data, size_t size)
{
    const off_t offset = (off_t)slot * AGENT_MAILBOX_SLOT_BYTES;
    ssize_t written;

    size = round_up(size);
    do
        written = pwrite(mailbox->fd, data, size, offset);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return -errno;
    return (size_t)written == size ? 0 : -EIO;
}

static bool relay_open(struct mailbox *mailbox)
{
    if (mailbox->relay[0] >= 0)
        return true;
    if (pipe2(mailbox->relay, O_CLOEXEC | O_NONBLOCK) < 0)
        return false;
    (void)fcntl(mailbox->relay[0], F_SETPIPE_SZ, AGENT_MAILBOX_SLOT_BYTES); /* less at once */
    return true;
}

/* How many of the relay's SIZE bytes the disk takes as they are: what it refuses stays there.
 */
static size_t relay_put(struct mailbox *mailbox, int slot, size_t size)
{
    size_t put = 0;

    while (put < size) {
        loff_t offset = (loff_t)slot * AGENT_MAILBOX_SLOT_BYTES + (loff_t)put;
        ssize_t part = splice(mailbox->relay[0], NULL, mailbox->fd, &offset, size - put,
                              SPLICE_F_NONBLOCK);

        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            break;
        put += (size_t)part;
    }
    return put;
}

/* The SIZE bytes that are left in it. 0 or -errno. */
static int relay_read(struct mailbox *mailbox, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t part = read(mailbox->relay[0], mailbox->bounce + got, size - got);

        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0) {
            relay_close(mailbox); /* with what is in it */
            return -EIO;
        }
        got += (size_t)part;
    }
    return 0;
}

ssize_t mailbox_put_pipe(struct mailbox *mailbox, int slot, int pipe, size_t size,
                         size_t *ret_put)
{
    size_t put;
    ssize_t taken;

    size -= size % MAILBOX_ALIGN_BYTES;
    if (size < AGENT_MAILBOX_MIN_BYTES || !mailbox_bounce(mailbox) || !relay_open(mailbox))
        return 0;
    taken = splice(pipe, NULL, mailbox->relay[1], NULL, size, SPLICE_F_NONBLOCK);
    if (taken <= 0)
        return 0;
    put = relay_put(mailbox, slot, (size_t)taken);
    if (relay_read(mailbox, (size_t)taken - put) < 0)
        return -EIO;
    *ret_put = put;
    return taken;
}

static void punch(const struct mailbox *mailbox, unsigned slot, unsigned count)
{
    (void)fallocate(mailbox->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)slot * AGENT_MAILBOX_SLOT_BYTES,
                    (off_t)count * AGENT_MAILBOX_SLOT_BYTES); /* else it stays, bounded */
}

/* Those that nobody begins to fill meanwhile; nearly always that is all. */
static void give_memory_back(struct mailbox *mailbox)
{
    const unsigned slots = atomic_exchange(&mailbox->free, 0);

    if (slots == ALL_SLOTS)
        punch(mailbox, 0, AGENT_MAILBOX_SLOTS);
    for (unsigned slot = 0; slot < AGENT_MAILBOX_SLOTS && slots != ALL_SLOTS; slot++)
        if (slots & 1u << slot)
            punch(mailbox, slot, 1);
    (void)atomic_fetch_or(&mailbox->free, slots);
}

int mailbox_returned(struct mailbox *mailbox, uint32_t slots, bool idle)
{
    if (!mailbox_on(mailbox) || (atomic_load(&mailbox->free) & slots))
        return -EPROTO;
    (void)atomic_fetch_or(&mailbox->free, slots);
    if (idle)
        give_memory_back(mailbox);
    return 0;
}

/* The host's. */

static int slot_read(struct mailbox *mailbox, unsigned slot, void *to, size_t size)
{
    const off_t offset = HOST_SLOTS_OFFSET + (off_t)slot * AGENT_MAILBOX_SLOT_BYTES;
    ssize_t got;

    size = round_up(size);
    do
        got = pread(mailbox->fd, to, size, offset);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    return (size_t)got == size ? 0 : -EIO;
}

int mailbox_claim(struct mailbox *mailbox, unsigned slot)
{
    if (!mailbox_on(mailbox) || (mailbox->taken & 1u << slot))
        return -EPROTO;
    mailbox->taken |= 1u << slot;
    return 0;
}

int mailbox_get(struct mailbox *mailbox, unsigned slot, size_t size, void *to, size_t room)
{
    uint8_t *bounce;
    int result;

    if ((uintptr_t)to % MAILBOX_ALIGN_BYTES == 0 && room >= round_up(size))
        return slot_read(mailbox, slot, to, size);
    bounce = mailbox_bounce(mailbox);
    result = bounce ? slot_read(mailbox, slot, bounce, size) : -ENOMEM;
    if (result == 0)
        memcpy(to, bounce, size);
    return result;
}

uint32_t mailbox_take_owed(struct mailbox *mailbox, bool force)
{
    const uint32_t taken = mailbox->taken;

    if (!force && (unsigned)__builtin_popcount(taken) < AGENT_MAILBOX_RETURN_SLOTS)
        return 0;
    mailbox->taken = 0;
    return taken;
}
