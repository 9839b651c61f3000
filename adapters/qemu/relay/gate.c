/* gate.c - see gate.h. */
#include "gate.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "own_address.h"
#include "own_resolvers.h"

static const struct policy *gate_policy;

static bool gate_allows(struct address address, uint16_t port)
{
    if (!gate_policy || !policy_allows(gate_policy, address, port))
        return false;
    return address_kind(address) != ADDRESS_PUBLIC || gate_policy->private_networks ||
           !own_address(address);
}

/* Where it goes: TO itself, or a name server of this machine in its place, which is allowed
 * wherever it is. Size 0: nowhere. */
static socklen_t gate_destination(const struct sockaddr *to, socklen_t size,
                                  struct sockaddr_storage *ret_to)
{
    struct address address, resolver;
    uint16_t port;

    if (!gate_policy || !to || size > sizeof(*ret_to) ||
        address_of(to, size, &address, &port) < 0)
        return 0;
    if (port == DNS_PORT && own_resolvers_ask(to->sa_family == AF_INET, &resolver)) {
        if (!address_equal(resolver, address))
            return address_to(resolver, port, ret_to);
    } else if (!gate_allows(address, port)) {
        return 0;
    }
    memcpy(ret_to, to, size); /* with the interface of a link-local name server */
    return size;
}

/* A refusal comes as if it were on its way: libslirp then asks the socket, which is not
 * connected, and sends a RST, so that a guest need not wait. When connect() itself says
 * ECONNREFUSED, as the kernel does for loopback, libslirp 4.7 sends the RST in the frame that
 * it frees afterwards. */
int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size)
{
    struct sockaddr_storage destination;
    int result = -1;

    size = gate_destination(to.__sockaddr__, size, &destination);
    errno = ECONNREFUSED;
    if (size > 0)
        result = (int)syscall(SYS_connect, fd, &destination, size);
    if (result < 0 && errno == ECONNREFUSED)
        errno = EINPROGRESS;
    return result;
}

/* Without an address it goes where the socket is connected to: there connect() has judged. */
ssize_t sendto(int fd, const void *data, size_t data_size, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t size)
{
    struct sockaddr_storage destination;

    if (!to.__sockaddr__)
        return syscall(SYS_sendto, fd, data, data_size, flags, NULL, 0);
    size = gate_destination(to.__sockaddr__, size, &destination);
    if (size == 0) {
        errno = ENETUNREACH;
        return -1;
    }
    return syscall(SYS_sendto, fd, data, data_size, flags, &destination, size);
}

static bool is_name_server(const struct sockaddr *from, socklen_t size,
                           struct address *ret_address)
{
    uint16_t port;

    return from && address_of(from, size, ret_address, &port) == 0 && port == DNS_PORT;
}

ssize_t recvfrom(int fd, void *restrict data, size_t data_size, int flags, __SOCKADDR_ARG from,
                 socklen_t *restrict from_size)
{
    ssize_t size = syscall(SYS_recvfrom, fd, data, data_size, flags, from.__sockaddr__,
                           from_size);
    struct address address;

    if (size >= 0 && from_size && is_name_server(from.__sockaddr__, *from_size, &address))
        own_resolvers_hear(address, data, (size_t)size);
    return size;
}

/* A socket's errors are read so: the address is the one that a datagram was sent to. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t size = syscall(SYS_recvmsg, fd, message, flags);
    struct address address;

    if (size >= 0 && flags & MSG_ERRQUEUE &&
        is_name_server(message->msg_name, message->msg_namelen, &address))
        own_resolvers_fail(address);
    return size;
}

int gate_set(const struct policy *policy)
{
    if (dlsym(RTLD_DEFAULT, "connect") != (void *)connect ||
        dlsym(RTLD_DEFAULT, "sendto") != (void *)sendto ||
        dlsym(RTLD_DEFAULT, "recvfrom") != (void *)recvfrom ||
        dlsym(RTLD_DEFAULT, "recvmsg") != (void *)recvmsg)
        return -EPERM;
    gate_policy = policy;
    return 0;
}
