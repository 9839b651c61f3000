/* own_resolvers.h - this machine's name servers, which may be anywhere, on its loopback too,
 * and what becomes of the questions of the guest.
 *
 * The guest knows one address a family, which libslirp translates to the first of the file.
 * While a frame to that address is dealt with, gate.c puts the one in its place that is to be
 * asked (resolvers.h); at all other times a name server is an address as any other. */
#pragma once

#include <stdbool.h>

#include "address.h"

#define DNS_PORT 53u

/* A frame for the guest's name server is dealt with from now on, or no more. */
void own_resolvers_set_asking(bool asking);

/* False: no frame for the name server is dealt with, or there is none of that family. Of the
 * file as it was a second ago, at most. */
bool own_resolvers_ask(bool v4, struct address *ret_address);

/* A datagram of that address came. */
void own_resolvers_hear(struct address from, const void *data, size_t size);
/* The kernel says that nobody listens there. */
void own_resolvers_fail(struct address address);
