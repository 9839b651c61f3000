/* relay.h - a guest's network: frames on one side, ordinary sockets of this process on the
 * other, libslirp between them.
 *
 * The guest sees 10.0.2.0/24: itself .15, the gateway .2 (this machine's loopback, for the
 * ports that are named), DNS .3; the same below fd5a:6b3c:7e21:1::/64, when there is IPv6.
 * Outward TCP, UDP and DNS, where gate.h lets it. */
#pragma once

#include <stdbool.h>

struct relay_options {
    int frames_fd; /* datagram socket, a frame each */
    int report_fd; /* gets a byte when there was payload, at most one a second */
    bool ipv6;     /* besides IPv4 */
};

/* Until the frames' socket fails. The process's exit code. */
int relay_run(const struct relay_options *options);
