/* own_address.c - see own_address.h. */
#include "own_address.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "relay_timer.h"

#define SLOTS 256u
#define FRESH_NS 1000000000
#define SOME_PORT 9 /* discard; nothing is sent */

struct answer {
    struct address address;
    int64_t asked_ns; /* 0: never */
    bool own;
};

/* Only to an address of its own would the machine send from that same address. The raw call:
 * connect() of this process is guarded by who asks here (gate.c). */
static bool ask(struct address address)
{
    struct sockaddr_storage to, from;
    socklen_t size = address_to(address, SOME_PORT, &to);
    struct address source;
    uint16_t port;
    _cleanup_close_ int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return true; /* out of descriptors: the connection fails in any case */
    if (syscall(SYS_connect, fd, &to, size) < 0)
        return false; /* no way there */
    size = sizeof(from);
    return getsockname(fd, (struct sockaddr *)&from, &size) < 0 ||
           address_of((struct sockaddr *)&from, size, &source, &port) < 0 ||
           address_equal(source, address);
}

bool own_address(struct address address)
{
    static struct answer answers[SLOTS];
    uint64_t hash = (address.high ^ address.low) * 0x9e3779b97f4a7c15u;
    struct answer *answer = &answers[(hash >> 32) % SLOTS];
    int64_t now_ns = relay_clock_ns();

    if (!address_equal(answer->address, address) || answer->asked_ns == 0 ||
        now_ns - answer->asked_ns >= FRESH_NS)
        *answer =
            (struct answer){ .address = address, .asked_ns = now_ns, .own = ask(address) };
    return answer->own;
}
