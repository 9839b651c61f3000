/* stream_nng.h - what the files stream*.c share; nobody else includes it. */
#pragma once

#include <stdbool.h>

#include <nng/nng.h>

#include "loop.h"
#include "stream.h"

int stream_errno(int nng_error); /* 0 or -errno */

/* Waits for the callback, which may use *aio, then frees it and leaves NULL. */
void stream_aio_free(nng_aio **aio);

/* Wraps an established nng stream (consumed, also on failure). */
int stream_wrap(struct loop *loop, nng_stream *own_nng, bool tls, struct stream **ret_stream);

/* TLS configuration of a listener or a dialer for HOST; only with a tls+tcp URL. */
int stream_tls_listener(nng_stream_listener *listener, const struct stream_tls *tls);
int stream_tls_dialer(nng_stream_dialer *dialer, const char *url, const struct stream_tls *tls);
bool stream_url_is_tls(const char *url);
