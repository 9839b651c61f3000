/* address.h - an IP address of either family. Pure.
 *
 * IPv6 in two halves in host order; IPv4 is ::ffff:a.b.c.d, so that every rule holds for both
 * ways to write it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct address {
    uint64_t high, low;
};

struct address address_v4(uint32_t address); /* host order */
struct address address_v6(const uint8_t bytes[16]);
bool address_is_v4(struct address address);
bool address_equal(struct address a, struct address b);
/* Whether the first BITS (0 to 128) are those of PREFIX. */
bool address_in(struct address address, struct address prefix, unsigned bits);

/* -EAFNOSUPPORT: of another family, or shorter than it should be. */
int address_of(const struct sockaddr *from, socklen_t size, struct address *ret_address,
               uint16_t *ret_port);
/* The same back; how many bytes of RET_TO it takes. */
socklen_t address_to(struct address address, uint16_t port, struct sockaddr_storage *ret_to);
/* The text as inet_pton() takes it, of either family. -EINVAL. */
int address_parse(const char *text, struct address *ret_address);
