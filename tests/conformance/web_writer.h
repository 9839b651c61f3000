/* web_writer.h - the writing end of a channel at the router's web front: a blocking WebSocket,
 * for what a native stream has not, the text messages beside the data (contract 9.2). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "websocket.h"

struct web_writer;

/* Connects to 127.0.0.1:PORT and upgrades. 0 or -errno; -EPROTO: the front refused. */
int web_writer_open(uint16_t port, const char *channel_id, const char *access_key,
                    struct web_writer **ret_writer);
/* One message, WEBSOCKET_TEXT or WEBSOCKET_BINARY; blocks while the front takes nothing. */
int web_writer_send(struct web_writer *writer, enum websocket_opcode opcode, const void *data,
                    size_t size);
/* The end of the stream; returns when the front has answered with 1000. -ECONNRESET: another
 * code came. */
int web_writer_finish(struct web_writer *writer);
/* Without web_writer_finish() an abort: the connection is gone without a word. */
void web_writer_free(struct web_writer *writer);
