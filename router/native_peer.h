/* native_peer.h - one connection of the native front: a greeting, then a caller or an adapter.
 *
 * States, each of which ends with the connection:
 * - greeting: connected, the hello is awaited
 * - caller: calls through route.h; streams
 * - adapter: in the set, answers calls; may create channels; streams. Parked if its major
 * differs
 * - rival: an adapter whose name is connected, waits until that one shows life or is lost
 * - closing: refused or shut down, what is queued goes out */
#pragma once

#include "front_native.h"

struct native_peer;

/* Consumes the stream. It is one of FRONT's peers until it ends by itself. */
void native_peer_accept(struct front_native *front, struct stream *own_stream,
                        enum sp_mapping mapping);
/* Of another host, and without a hello. Its place is free at once. */
void native_peer_drop_oldest_stranger(struct front_native *front);
/* LINGER_MS 0: at once, the peer is gone when this returns. */
void native_peer_close(struct list *node, uint32_t linger_ms);
