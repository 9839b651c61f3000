/* relay.h - a guest's network: frames on one side, ordinary sockets of this process on the
 * other, libslirp between them.
 *
 * The guest sees 10.0.2.0/24: itself .15, the gateway .2 (this machine's loopback, when that is
 * allowed), DNS .3. Only TCP, UDP and DNS outward; IPv4. */
#pragma once

#include <stdbool.h>

struct relay_options {
    int frames_fd;      /* datagram socket, a frame each */
    int report_fd;      /* gets a byte when there was payload, at most one a second */
    bool host_loopback; /* the gateway leads to this machine's loopback */
};

/* Until the frames' socket fails. The process's exit code. */
int relay_run(const struct relay_options *options);
