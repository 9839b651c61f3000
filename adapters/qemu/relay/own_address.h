/* own_address.h - whether an address is this machine's own, as its routes say.
 *
 * What listens there may rely on a packet filter that guards the outside and trusts what comes
 * from the machine itself, as a guest's connection would. */
#pragma once

#include <stdbool.h>

#include "address.h"

/* The answer is kept for a second. */
bool own_address(struct address address);
