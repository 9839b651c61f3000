/* dial.h - a TCP connection to HOST:PORT: every address the name resolves to is tried.
 *
 * Addresses are tried in the resolver's order; the next one starts when one fails or is silent
 * for DIAL_STAGGER_MS, and the first that connects wins. There is no timeout here: whoever
 * waits frees the dial. */
#pragma once

#include "stream.h"

#define DIAL_STAGGER_MS 250u
#define DIAL_ADDRESSES_MAX 16u

struct dial;

/* Once: a stream, or NULL and why there is none. Frees nothing: dial_free() is due in any case.
 */
typedef void (*dial_done_fn)(void *ctx, struct stream *own_stream, const char *why);

/* HOST: a name or an address, IPv6 with or without brackets; borrowed for the call. 0 or
 * -errno. */
int dial_new(struct loop *loop, const char *host, uint16_t port, dial_done_fn done, void *ctx,
             struct dial **ret_dial);
void dial_free(struct dial *dial);
DEFINE_CLEANUP(struct dial *, dial_free)
