/* address.c - see address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define V4_MAPPED 0xffff00000000u /* of the low half */

struct address address_v4(uint32_t address)
{
    return (struct address){ .low = V4_MAPPED | address };
}

struct address address_v6(const uint8_t bytes[16])
{
    struct address address = { 0 };

    for (int i = 0; i < 8; i++) {
        address.high = address.high << 8 | bytes[i];
        address.low = address.low << 8 | bytes[i + 8];
    }
    return address;
}

bool address_is_v4(struct address address)
{
    return address.high == 0 && address.low >> 32 == V4_MAPPED >> 32;
}

bool address_equal(struct address a, struct address b)
{
    return a.high == b.high && a.low == b.low;
}

static bool half_in(uint64_t half, uint64_t prefix, unsigned bits)
{
    return bits == 0 || (half ^ prefix) >> (64 - bits) == 0;
}

bool address_in(struct address address, struct address prefix, unsigned bits)
{
    return half_in(address.high, prefix.high, bits < 64 ? bits : 64) &&
           half_in(address.low, prefix.low, bits < 64 ? 0 : bits - 64);
}

int address_of(const struct sockaddr *from, socklen_t size, struct address *ret_address,
               uint16_t *ret_port)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (size >= sizeof(v4) && from->sa_family == AF_INET) {
        memcpy(&v4, from, sizeof(v4));
        *ret_address = address_v4(ntohl(v4.sin_addr.s_addr));
        *ret_port = ntohs(v4.sin_port);
        return 0;
    }
    if (size >= sizeof(v6) && from->sa_family == AF_INET6) {
        memcpy(&v6, from, sizeof(v6));
        *ret_address = address_v6(v6.sin6_addr.s6_addr);
        *ret_port = ntohs(v6.sin6_port);
        return 0;
    }
    return -EAFNOSUPPORT;
}

socklen_t address_to(struct address address, uint16_t port, struct sockaddr_storage *ret_to)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

    if (address_is_v4(address)) {
        v4.sin_addr.s_addr = htonl((uint32_t)address.low);
        memcpy(ret_to, &v4, sizeof(v4));
        return sizeof(v4);
    }
    for (int i = 0; i < 8; i++) {
        v6.sin6_addr.s6_addr[i] = (uint8_t)(address.high >> (56 - 8 * i));
        v6.sin6_addr.s6_addr[i + 8] = (uint8_t)(address.low >> (56 - 8 * i));
    }
    memcpy(ret_to, &v6, sizeof(v6));
    return sizeof(v6);
}

int address_parse(const char *text, struct address *ret_address)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, text, &v4) == 1)
        *ret_address = address_v4(ntohl(v4.s_addr));
    else if (inet_pton(AF_INET6, text, &v6) == 1)
        *ret_address = address_v6(v6.s6_addr);
    else
        return -EINVAL;
    return 0;
}
