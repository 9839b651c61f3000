/* ready.h - tells whoever started the router how far it is, so that nobody has to poll.
 *
 * On the descriptor of --ready-fd it writes a line `listening PORT` when the fronts take
 * connections (PORT of the first address of the web front, also where the settings say 0), and
 * a line `bound NAME` each time the adapter slot becomes bound. */
#pragma once

#include "binding.h"

struct ready {
    int fd; /* -1: nobody asked */
};

/* FD is from the command line; -EBADF when it is not open for writing. */
int ready_open(struct ready *ready, int fd);
void ready_listening(const struct ready *ready, uint16_t web_port);
/* binding.changed */
void ready_binding_changed(void *ctx, const struct binding *binding);
void ready_close(struct ready *ready);
