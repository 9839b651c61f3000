/* network.h - the network of one machine: a socket of frames for QEMU, and the process
 * sandbox-relay at its other end. What its guest may reach is as the settings were when it was
 * made.
 *
 * States: running -> ended (the relay failed; it is started again, in a second the first time,
 * the guest's connections are lost) -> running; any -> freed, and gone when the process is
 * reaped. */
#pragma once

#include <stdint.h>

#include "backend.h"
#include "list.h"

struct network;

int network_new(struct backend *backend, const char *name, struct network **ret_network);
/* Kills the relay; it is reaped in the background. */
void network_free(struct network *network);
DEFINE_CLEANUP(struct network *, network_free)

/* QEMU's end; borrowed, and kept so that a new relay finds the same machine. */
int network_fd(const struct network *network);
/* Seconds of the loop's clock of the last payload (contract 10); -1: none yet. */
int64_t network_last_payload(const struct network *network);

/* What its guest is told: IPv6 too, when this machine had a way out by it. */
const struct machine_network *network_addresses(const struct network *network);

/* The process ends: kills, reaps and frees all of the list. */
void networks_end(struct list *networks);
