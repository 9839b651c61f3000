/* gate.c - see gate.h. */
#include "gate.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "own_address.h"
#include "resolvers.h"

#define DNS_PORT 53

static const struct policy *gate_policy;

static bool gate_allows(const struct sockaddr *to, socklen_t size)
{
    struct address address;
    uint16_t port;

    if (!gate_policy || !to || address_of(to, size, &address, &port) < 0)
        return false;
    if (port == DNS_PORT && resolvers_have(address))
        return true;
    if (!policy_allows(gate_policy, address, port))
        return false;
    return address_kind(address) != ADDRESS_PUBLIC || gate_policy->private_networks ||
           !own_address(address);
}

/* A refusal comes as if it were on its way: libslirp then asks the socket, which is not
 * connected, and sends a RST, so that a guest need not wait. When connect() itself says
 * ECONNREFUSED, as the kernel does for loopback, libslirp 4.7 sends the RST in the frame that
 * it frees afterwards. */
int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size)
{
    int result = -1;

    errno = ECONNREFUSED;
    if (gate_allows(to.__sockaddr__, size))
        result = (int)syscall(SYS_connect, fd, to.__sockaddr__, size);
    if (result < 0 && errno == ECONNREFUSED)
        errno = EINPROGRESS;
    return result;
}

/* Without an address it goes where the socket is connected to: there connect() has judged. */
ssize_t sendto(int fd, const void *data, size_t data_size, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t size)
{
    if (to.__sockaddr__ && !gate_allows(to.__sockaddr__, size)) {
        errno = ENETUNREACH;
        return -1;
    }
    return syscall(SYS_sendto, fd, data, data_size, flags, to.__sockaddr__, size);
}

int gate_set(const struct policy *policy)
{
    if (dlsym(RTLD_DEFAULT, "connect") != (void *)connect ||
        dlsym(RTLD_DEFAULT, "sendto") != (void *)sendto)
        return -EPERM;
    gate_policy = policy;
    return 0;
}
