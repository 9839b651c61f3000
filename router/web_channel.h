/* web_channel.h - one end of a data channel as a WebSocket (iii-wire 4). */
#pragma once

#include "channel.h"
#include "web_connection.h"
#include "web_request.h"

/* Attaches and upgrades, from the connection's `request`. -ENOENT: no such channel, nothing was
 * sent; -ENOMEM. An end that was taken before gets the 101 and a close frame with 1008. */
int web_channel_accept(struct channel_set *channels, struct web_connection *connection,
                       const struct web_request *request);
