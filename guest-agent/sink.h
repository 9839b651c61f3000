/* sink.h - where the pipes of background children go when their exec is over.
 *
 * They are read and thrown away until they end, so that a child neither blocks nor gets SIGPIPE
 * (contract 5.2.4). */
#pragma once

#include "loop.h"

/* Consumes the descriptor (non-blocking). One that has ended already is closed at once. */
void sink_take(struct loop *loop, int own_fd);
