/* activity.h - which frames are payload that keeps a sandbox from being idle (contract 10).
 *
 * A TCP segment counts when it brings bytes that the other side has not acknowledged; so bare
 * ACKs, SYN, FIN, RST and keep-alive probes (empty, or with one old byte) do not. A UDP
 * datagram counts unless it is DHCP. Nothing else counts. Memory is fixed: of many connections
 * the one that was silent longest is forgotten. */
#pragma once

#include <stdbool.h>

#include "frame.h"

#define ACTIVITY_FLOWS 1024u /* connections that are remembered */

struct activity;

struct activity *activity_new(void); /* NULL: no memory */
void activity_free(struct activity *activity);

/* A frame of either direction, in the order of their coming. True: it is payload. */
bool activity_frame(struct activity *activity, const struct frame *frame);
