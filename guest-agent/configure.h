/* configure.h - CONFIGURE: what makes a machine this one and no copy of its template.
 *
 * Clock, randomness, names and network. What fails is logged and does not stop the rest: a
 * sandbox without a resolver is better than none. */
#pragma once

#include <stdbool.h>

#include "tables.h"

/* MACHINE: we own the kernel; else (in a container) clock and randomness are not ours to set.
 */
void configure_apply(const struct guest_configure *configure, bool machine);
