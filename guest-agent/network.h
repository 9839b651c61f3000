/* network.h - the interfaces of the sandbox. */
#pragma once

#include "tables.h"

int network_loopback_up(void); /* 0 or -errno */

/* Addresses, routes and hardware address of the one interface besides loopback, as far as
 * CONFIGURE has them. 0 or -errno of the first step that failed. */
int network_configure(const struct guest_configure *configure);
