/* raw_peer.h - one socket to the router that does what no client does: bytes are sent as they
 * are, nothing is answered, the end is abrupt if wanted. Sends never wait. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "envelope.h"
#include "router_process.h"

/* The descriptor. -1: refused at once (the router may do that to a crowd). */
int raw_native(const struct router_process *router);
int raw_web(const struct router_process *router);
void raw_close(int fd);
void raw_abort(int fd); /* with a reset, where there is one */

void raw_send(int fd, const void *data, size_t size);
void raw_text(int fd, const char *text);
/* The SP handshake. */
void raw_handshake(int fd);
/* An SP frame around the message; DATA's length is told as LENGTH. */
void raw_frame(int fd, uint64_t length, const void *data, size_t size);
void raw_envelope(int fd, const struct envelope *envelope);
/* Handshake and hello of a caller. */
void raw_caller(int fd);
/* The request that PATH be upgraded. */
void raw_upgrade(int fd, const char *path);
/* A masked frame whose payload is told to have LENGTH bytes. */
void raw_websocket(int fd, uint8_t first, uint64_t length, const void *data, size_t size);
/* Reads until the router ends it, at most TIMEOUT_MS; false: it did not. What came first is in
 * FIRST (NUL-terminated). */
bool raw_ended(int fd, int timeout_ms, char *first, size_t first_size);
