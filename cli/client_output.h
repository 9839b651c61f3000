/* client_output.h - bytes onto a descriptor of ours while signals are heard. */
#pragma once

#include "client.h"

/* Waits for the reader as long as it takes; the connection to the router may end meanwhile. 0,
 * -EINTR: client->interrupt.caught; -errno. */
int client_output(struct client *client, int fd, const void *data, size_t size);
