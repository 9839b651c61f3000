/* policy.h - where a guest may connect to. Pure.
 *
 * It judges the address that a socket of this process is about to be connected to, so names
 * and redirects do not matter. What needs the machine (its name servers, its own addresses) is
 * gate.c's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

enum address_kind {
    ADDRESS_PUBLIC,
    ADDRESS_PRIVATE,   /* of somebody's own network: only when that is allowed */
    ADDRESS_LOOPBACK,  /* this machine: only the ports that are named */
    ADDRESS_FORBIDDEN, /* link-local, services of clouds, groups, reserved: never */
    ADDRESS_KIND_MAX
};

struct policy {
    bool private_networks;             /* they may be reached */
    uint64_t host_ports[65536u / 64u]; /* of loopback, a bit for each port */
};

enum address_kind address_kind(struct address address);
bool policy_allows(const struct policy *policy, struct address address, uint16_t port);

/* TEXT is `80,443`; "" names none. -EINVAL: not so, or one is not within 1 to 65535. */
int policy_name_host_ports(struct policy *policy, const char *text);
