/* stream_nng.h - what the files stream*.c share; nobody else includes it. */
#pragma once

#include <stdbool.h>

#include <nng/nng.h>

#include "loop.h"
#include "stream.h"

int stream_errno(int nng_error); /* 0 or -errno */

/* Waits for the callback, which may use *aio, then frees it and leaves NULL. */
void stream_aio_free(nng_aio **aio);

/* Wraps an established nng stream (consumed, also on failure). TLS: NULL, or what its session
 * holds. */
int stream_wrap(struct loop *loop, nng_stream *own_nng, struct tls_config *tls,
                struct stream **ret_stream);
