/* tls.h - one TLS session (mbedTLS) over bytes that somebody else carries.
 *
 * nng has TLS streams of its own, which are not used: they report bytes as sent that only lie
 * in a buffer of theirs, which a close drops, and a read posted after they have noticed the end
 * of the connection is never answered (1.5.2). So nng carries tcp, and this is what is in it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "cleanup.h"

/* PEM file paths; NULL: none. With a CA the peer must present a certificate. */
struct tls_files {
    const char *cert_file;
    const char *key_file;
    const char *ca_file;
};

/* What the sessions of one listener or dialer share; each holds it. 0, -EINVAL without what the
 * role needs (a server: certificate and key; a client: a CA, and a certificate with its key or
 * neither) or for a file that holds something else, else -errno of reading a file. */
struct tls_config;
int tls_config_new_server(const struct tls_files *files, struct tls_config **ret_config);
/* HOST is what the server's certificate must be for. */
int tls_config_new_client(const struct tls_files *files, const char *host,
                          struct tls_config **ret_config);
void tls_config_free(struct tls_config *config); /* the last holder frees it; NULL is fine */
DEFINE_CLEANUP(struct tls_config *, tls_config_free)

struct tls;
int tls_new(struct tls_config *config, struct tls **ret_tls); /* 0 or -errno */
void tls_free(struct tls *tls);                               /* NULL is fine */
DEFINE_CLEANUP(struct tls *, tls_free)

/* Takes the SIZE bytes that came (0: begins the handshake) and appends to PLAIN what is in
 * them; an answer of the session's own waits in tls_sealed(). 0, -EPIPE: the peer said that
 * nothing follows, -EACCES: its certificate is none to trust, -EPROTO, -ENOMEM. */
int tls_unseal(struct tls *tls, const uint8_t *data, size_t size, struct buf *plain);

/* Moves all of PLAIN, encrypted, behind tls_sealed(); nothing before the handshake is over or
 * after tls_unseal() has failed. 0, or -errno, and the session is of no use any more. */
int tls_seal(struct tls *tls, struct buf *plain);

/* Says that nothing follows; once, after the handshake. */
void tls_close(struct tls *tls);

/* What is to be sent; the caller takes it out. */
struct buf *tls_sealed(struct tls *tls);
