/* network.c - see network.h. The old ioctls do all that is needed here. */
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ipv6.h> /* behind the system's headers */
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "cleanup.h"

#define MAC_BYTES 6

/* `address/prefix` in two. */
struct cidr {
    char address[INET6_ADDRSTRLEN];
    unsigned prefix;
};

static int cidr_parse(const char *text, unsigned prefix_max, struct cidr *ret_cidr)
{
    const char *slash = strchr(text, '/');
    size_t size = slash ? (size_t)(slash - text) : strlen(text);
    unsigned long prefix = slash ? strtoul(slash + 1, NULL, 10) : prefix_max;

    if (size >= sizeof(ret_cidr->address) || prefix > prefix_max)
        return -EINVAL;
    memcpy(ret_cidr->address, text, size);
    ret_cidr->address[size] = 0;
    ret_cidr->prefix = (unsigned)prefix;
    return 0;
}

static void request_init(struct ifreq *request, const char *name)
{
    *request = (struct ifreq){ 0 };
    (void)snprintf(request->ifr_name, sizeof(request->ifr_name), "%s", name);
}

static int interface_set_flags(int fd, const char *name, bool up)
{
    struct ifreq request;

    request_init(&request, name);
    if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        return -errno;
    if (up)
        request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
    else
        request.ifr_flags = (short)(request.ifr_flags & ~IFF_UP);
    return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

int network_loopback_up(void)
{
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd < 0 ? -errno : interface_set_flags(fd, "lo", true);
}

/* The first interface that is not loopback. */
static int interface_find(char ret_name[IFNAMSIZ])
{
    struct if_nameindex *all = if_nameindex();
    int result = -ENODEV;

    if (!all)
        return -errno;
    for (struct if_nameindex *one = all; one->if_index != 0; one++) {
        if (strcmp(one->if_name, "lo") == 0)
            continue;
        (void)snprintf(ret_name, IFNAMSIZ, "%s", one->if_name);
        result = 0;
        break;
    }
    if_freenameindex(all);
    return result;
}

static int set_hardware_address(int fd, const char *name, const char *mac)
{
    struct ifreq request;

    request_init(&request, name);
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    for (int i = 0; i < MAC_BYTES; i++) {
        char *end;

        request.ifr_hwaddr.sa_data[i] = (char)strtoul(mac, &end, 16);
        if (end != mac + 2 || *end != (i < MAC_BYTES - 1 ? ':' : 0))
            return -EINVAL;
        mac = end + 1;
    }
    return ioctl(fd, SIOCSIFHWADDR, &request) < 0 ? -errno : 0;
}

static int set_address(int fd, const char *name, const char *text)
{
    struct ifreq request;
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)&request.ifr_addr;
    struct cidr cidr;

    if (cidr_parse(text, 32, &cidr) < 0)
        return -EINVAL;
    request_init(&request, name);
    address->sin_family = AF_INET;
    if (inet_pton(AF_INET, cidr.address, &address->sin_addr) != 1)
        return -EINVAL;
    if (ioctl(fd, SIOCSIFADDR, &request) < 0)
        return -errno;
    address->sin_addr.s_addr = cidr.prefix ? htonl(~0u << (32 - cidr.prefix)) : 0;
    return ioctl(fd, SIOCSIFNETMASK, &request) < 0 ? -errno : 0;
}

static int set_gateway(int fd, const char *text)
{
    struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
    struct sockaddr_in *gateway = (struct sockaddr_in *)(void *)&route.rt_gateway;

    route.rt_dst.sa_family = AF_INET;
    route.rt_genmask.sa_family = AF_INET;
    gateway->sin_family = AF_INET;
    if (inet_pton(AF_INET, text, &gateway->sin_addr) != 1)
        return -EINVAL;
    return ioctl(fd, SIOCADDRT, &route) < 0 && errno != EEXIST ? -errno : 0;
}

/* The address is ours alone, so nobody has to be asked first. Best effort: it only saves a
 * second. */
static void skip_duplicate_detection(const char *name)
{
    char path[64 + IFNAMSIZ];
    _cleanup_close_ int fd = -1;

    (void)snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/accept_dad", name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "0", 1);
}

static int set_address6(int fd, const char *name, const char *text)
{
    struct in6_ifreq request = { .ifr6_ifindex = (int)if_nametoindex(name) };
    struct cidr cidr;

    if (cidr_parse(text, 128, &cidr) < 0)
        return -EINVAL;
    request.ifr6_prefixlen = cidr.prefix;
    if (inet_pton(AF_INET6, cidr.address, &request.ifr6_addr) != 1)
        return -EINVAL;
    return ioctl(fd, SIOCSIFADDR, &request) < 0 && errno != EEXIST ? -errno : 0;
}

static int set_gateway6(int fd, const char *name, const char *text)
{
    struct in6_rtmsg route = {
        .rtmsg_flags = RTF_UP | RTF_GATEWAY,
        .rtmsg_metric = 1,
        .rtmsg_ifindex = (int)if_nametoindex(name),
    };

    if (inet_pton(AF_INET6, text, &route.rtmsg_gateway) != 1)
        return -EINVAL;
    return ioctl(fd, SIOCADDRT, &route) < 0 && errno != EEXIST ? -errno : 0;
}

static int configure_v4(const struct guest_configure *configure, const char *name)
{
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = fd < 0 ? -errno : 0;

    if (result == 0 && configure->mac) {
        (void)interface_set_flags(fd, name, false); /* some drivers refuse it while up */
        result = set_hardware_address(fd, name, configure->mac);
    }
    if (result == 0)
        result = interface_set_flags(fd, name, true);
    if (result == 0 && configure->address)
        result = set_address(fd, name, configure->address);
    if (result == 0 && configure->gateway)
        result = set_gateway(fd, configure->gateway);
    return result;
}

static int configure_v6(const struct guest_configure *configure, const char *name)
{
    _cleanup_close_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = fd < 0 ? -errno : 0;

    if (result == 0)
        result = set_address6(fd, name, configure->address6);
    if (result == 0 && configure->gateway6)
        result = set_gateway6(fd, name, configure->gateway6);
    return result;
}

int network_configure(const struct guest_configure *configure)
{
    char name[IFNAMSIZ];
    int result;

    if (!configure->address && !configure->address6)
        return 0;
    result = interface_find(name);
    if (result < 0)
        return result;
    skip_duplicate_detection(name);
    result = configure_v4(configure, name);
    if (configure->address6) {
        int result6 = configure_v6(configure, name);

        result = result < 0 ? result : result6;
    }
    return result;
}
