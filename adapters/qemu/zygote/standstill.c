/* standstill.c - see standstill.h. Takes the place of two of libc's functions.
 *
 * Any thread may be the one that ends it, so all is atomic; who reads the clock looks first
 * whether it goes, and asks libc then: so it never goes backwards. */
#include "standstill.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))
#define NS_A_SECOND 1000000000
#define STANDSTILL_MAX_NS (STANDSTILL_MAX_MS * 1000000ll)

typedef int clock_fn(clockid_t id, struct timespec *ret_time);
typedef ssize_t sendmsg_fn(int fd, const struct msghdr *message, int flags);

static _Atomic int64_t still_ns;  /* what it shows; 0: it goes */
static _Atomic int64_t behind_ns; /* when it goes */
static _Atomic int awaited_fd = -1;

static int libc_clock(clockid_t id, struct timespec *ret_time)
{
    static _Atomic(clock_fn *) next;
    clock_fn *found = atomic_load(&next);

    if (!found) {
        *(void **)&found = dlsym(RTLD_NEXT, "clock_gettime");
        atomic_store(&next, found);
    }
    return found(id, ret_time);
}

static int64_t libc_now_ns(void)
{
    struct timespec now = { 0 };

    (void)libc_clock(CLOCK_MONOTONIC, &now); /* cannot fail */
    return (int64_t)now.tv_sec * NS_A_SECOND + now.tv_nsec;
}

void standstill_begin(int answer_fd)
{
    atomic_store(&awaited_fd, answer_fd);
    atomic_store(&still_ns, libc_now_ns());
}

/* Of several that end it at once the first one says by how much. */
static void standstill_end(int64_t since_ns, int64_t now_ns)
{
    int64_t nothing = 0;

    (void)atomic_compare_exchange_strong(&behind_ns, &nothing, now_ns - since_ns);
    atomic_store(&still_ns, 0);
}

static int64_t shown_ns(void)
{
    for (;;) {
        int64_t since_ns = atomic_load(&still_ns), now_ns = libc_now_ns();

        if (since_ns == 0 && atomic_load(&still_ns) == 0)
            return now_ns - atomic_load(&behind_ns);
        if (since_ns != 0 && now_ns - since_ns < STANDSTILL_MAX_NS)
            return since_ns;
        if (since_ns != 0)
            standstill_end(since_ns, now_ns);
    }
}

EXPORTED int clock_gettime(clockid_t id, struct timespec *ret_time)
{
    int64_t now_ns;

    if (id != CLOCK_MONOTONIC)
        return libc_clock(id, ret_time);
    now_ns = shown_ns();
    ret_time->tv_sec = now_ns / NS_A_SECOND;
    ret_time->tv_nsec = now_ns % NS_A_SECOND;
    return 0;
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static _Atomic(sendmsg_fn *) next;
    sendmsg_fn *found = atomic_load(&next);
    int64_t since_ns;

    if (!found) {
        *(void **)&found = dlsym(RTLD_NEXT, "sendmsg");
        atomic_store(&next, found);
    }
    if (fd == atomic_load(&awaited_fd)) {
        atomic_store(&awaited_fd, -1);
        since_ns = atomic_load(&still_ns);
        if (since_ns != 0)
            standstill_end(since_ns, libc_now_ns());
    }
    return found(fd, message, flags);
}
