/* gate.h - the one way out of this process: connect() and sendto(), guarded.
 *
 * libslirp makes its sockets itself and asks nobody. So the program defines these two calls,
 * which then take the place of libc's in the whole process: whatever a frame led libslirp to,
 * the address that the kernel would get is judged here (policy.h), and nothing that a guest
 * sends comes past it. Before gate_set() everything is refused. recvfrom() and recvmsg() only
 * listen to what name servers say (own_resolvers.h). A part of sandbox-relay alone: linked
 * elsewhere it would refuse what other programs do. */
#pragma once

#include "policy.h"

/* Borrowed for the life of the process. -EPERM: the calls of libraries do not come here. */
int gate_set(const struct policy *policy);
