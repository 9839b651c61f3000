/* tls.c - sessions of mbedTLS, whose bytes come from and go to buffers. It never waits, knows
 * no socket and has no state that another session could see. */
#include "tls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
#include <psa/crypto.h>
#endif

#include "file.h"

#define TLS_FILE_MAX_BYTES (1024u * 1024)
#define TLS_READ_BYTES (16u * 1024) /* a record */
/* What a session says of its own accord, unread: a handshake is less, and a peer that provokes
 * answers without reading them gets no more. */
#define TLS_OWN_WORDS_MAX_BYTES (256u * 1024)

struct tls_config {
    unsigned holders;
    char *host; /* NULL: a server */
    mbedtls_ssl_config ssl;
    mbedtls_x509_crt cert, ca;
    mbedtls_pk_context key;
};

struct tls {
    struct tls_config *config;
    mbedtls_ssl_context ssl;
    const uint8_t *come; /* not yet taken; borrowed for a call of tls_unseal() */
    size_t come_bytes;
    struct buf sealed;
    bool unsealing; /* what is sent now is the session's own */
    bool closed;    /* tls_close() was called */
    bool failed;    /* nothing more is sealed; an alert may wait to be sent */
};

static int tls_errno(int error)
{
    switch (error) {
    case 0:
        return 0;
    case MBEDTLS_ERR_SSL_WANT_READ:
    case MBEDTLS_ERR_SSL_WANT_WRITE:
        return -EAGAIN;
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
        return -EPIPE;
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
        return -EACCES;
    case MBEDTLS_ERR_SSL_ALLOC_FAILED:
    case MBEDTLS_ERR_X509_ALLOC_FAILED:
    case MBEDTLS_ERR_PK_ALLOC_FAILED:
        return -ENOMEM;
    default:
        return -EPROTO;
    }
}

/* What files hold: anything but memory is their fault. */
static int tls_parse_errno(int error)
{
    int result = tls_errno(error);

    return result == 0 || result == -ENOMEM ? result : -EINVAL;
}

static int tls_random(void *ctx, unsigned char *bytes, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t result = getrandom(bytes + got, size - got, 0);

        if (result > 0)
            got += (size_t)result;
        else if (errno != EINTR)
            return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
    }
    return 0;
}

/* Configuration. */

/* PEM text; mbedTLS counts the NUL behind it. */
static int pem_read(const char *path, struct buf *pem)
{
    int result = file_read(path, TLS_FILE_MAX_BYTES, pem);

    return result == 0 && !buf_text(pem) ? -ENOMEM : result;
}

static int config_read_certificates(const char *path, mbedtls_x509_crt *certificates)
{
    _cleanup_(buf_done)
    struct buf pem = { 0 };
    int result = pem_read(path, &pem);

    if (result < 0)
        return result;
    return tls_parse_errno(mbedtls_x509_crt_parse(certificates, pem.data, pem.size + 1));
}

static int parse_key(mbedtls_pk_context *key, const struct buf *pem)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
    return mbedtls_pk_parse_key(key, pem->data, pem->size + 1, NULL, 0, tls_random, NULL);
#else
    return mbedtls_pk_parse_key(key, pem->data, pem->size + 1, NULL, 0);
#endif
}

static int config_read_key(const char *path, mbedtls_pk_context *key)
{
    _cleanup_(buf_done)
    struct buf pem = { 0 };
    int result = pem_read(path, &pem);

    if (result == 0)
        result = tls_parse_errno(parse_key(key, &pem));
    if (pem.data)
        explicit_bzero(pem.data, pem.size);
    return result;
}

static int config_read(struct tls_config *config, const struct tls_files *files)
{
    int result = 0;

    if (files->ca_file)
        result = config_read_certificates(files->ca_file, &config->ca);
    if (result == 0 && files->cert_file)
        result = config_read_certificates(files->cert_file, &config->cert);
    if (result == 0 && files->cert_file)
        result = config_read_key(files->key_file, &config->key);
    if (result == 0 && files->cert_file)
        result = tls_parse_errno(
            mbedtls_ssl_conf_own_cert(&config->ssl, &config->cert, &config->key));
    return result;
}

static int config_set_up(struct tls_config *config, int role)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
    if (psa_crypto_init() != PSA_SUCCESS)
        return -ENOMEM;
#endif
    if (mbedtls_ssl_config_defaults(&config->ssl, role, MBEDTLS_SSL_TRANSPORT_STREAM,
                                    MBEDTLS_SSL_PRESET_DEFAULT) != 0)
        return -ENOMEM;
#if MBEDTLS_VERSION_NUMBER < 0x03000000 /* later ones know nothing older */
    mbedtls_ssl_conf_min_version(&config->ssl, MBEDTLS_SSL_MAJOR_VERSION_3,
                                 MBEDTLS_SSL_MINOR_VERSION_3);
#endif
    mbedtls_ssl_conf_rng(&config->ssl, tls_random, NULL);
    return 0;
}

static int config_new(int role, const struct tls_files *files, const char *host,
                      struct tls_config **ret_config)
{
    _cleanup_(tls_config_freep)
    struct tls_config *config = calloc(1, sizeof(*config));
    int result;

    if (!config)
        return -ENOMEM;
    config->holders = 1;
    mbedtls_ssl_config_init(&config->ssl);
    mbedtls_x509_crt_init(&config->cert);
    mbedtls_x509_crt_init(&config->ca);
    mbedtls_pk_init(&config->key);
    if (host && !(config->host = strdup(host)))
        return -ENOMEM;
    result = config_set_up(config, role);
    if (result == 0)
        result = config_read(config, files);
    if (result < 0)
        return result;
    mbedtls_ssl_conf_ca_chain(&config->ssl, files->ca_file ? &config->ca : NULL, NULL);
    mbedtls_ssl_conf_authmode(&config->ssl, files->ca_file ? MBEDTLS_SSL_VERIFY_REQUIRED
                                                           : MBEDTLS_SSL_VERIFY_NONE);
    *ret_config = take_ptr(config);
    return 0;
}

int tls_config_new_server(const struct tls_files *files, struct tls_config **ret_config)
{
    if (!files || !files->cert_file || !files->key_file)
        return -EINVAL;
    return config_new(MBEDTLS_SSL_IS_SERVER, files, NULL, ret_config);
}

int tls_config_new_client(const struct tls_files *files, const char *host,
                          struct tls_config **ret_config)
{
    if (!files || !files->ca_file || !files->cert_file != !files->key_file)
        return -EINVAL; /* without a CA it would trust anyone */
    return config_new(MBEDTLS_SSL_IS_CLIENT, files, host, ret_config);
}

void tls_config_free(struct tls_config *config)
{
    if (!config || --config->holders > 0)
        return;
    mbedtls_ssl_config_free(&config->ssl);
    mbedtls_x509_crt_free(&config->cert);
    mbedtls_x509_crt_free(&config->ca);
    mbedtls_pk_free(&config->key);
    free(config->host);
    free(config);
}

/* Sessions: mbedTLS calls these two from inside the calls below. */

static int session_send(void *ctx, const unsigned char *data, size_t size)
{
    struct tls *tls = ctx;

    if (tls->unsealing && tls->sealed.size + size > TLS_OWN_WORDS_MAX_BYTES)
        return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
    return buf_append(&tls->sealed, data, size) < 0 ? MBEDTLS_ERR_SSL_ALLOC_FAILED : (int)size;
}

static int session_receive(void *ctx, unsigned char *data, size_t size)
{
    struct tls *tls = ctx;
    size_t count = size < tls->come_bytes ? size : tls->come_bytes;

    if (count == 0)
        return MBEDTLS_ERR_SSL_WANT_READ;
    memcpy(data, tls->come, count);
    tls->come += count;
    tls->come_bytes -= count;
    return (int)count;
}

int tls_new(struct tls_config *config, struct tls **ret_tls)
{
    _cleanup_(tls_freep)
    struct tls *tls = calloc(1, sizeof(*tls));
    int error;

    if (!tls)
        return -ENOMEM;
    tls->config = config;
    config->holders++;
    mbedtls_ssl_init(&tls->ssl);
    error = mbedtls_ssl_setup(&tls->ssl, &config->ssl);
    if (error == 0 && config->host)
        error = mbedtls_ssl_set_hostname(&tls->ssl, config->host);
    if (error != 0)
        return -ENOMEM;
    mbedtls_ssl_set_bio(&tls->ssl, tls, session_send, session_receive, NULL);
    *ret_tls = take_ptr(tls);
    return 0;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    mbedtls_ssl_free(&tls->ssl);
    tls_config_free(tls->config);
    buf_done(&tls->sealed);
    free(tls);
}

/* How many bytes it read, or an error of mbedTLS. */
static int session_read(struct tls *tls, uint8_t *data, size_t size)
{
    int count;

    do
        count = mbedtls_ssl_read(&tls->ssl, data, size);
#ifdef MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET
    while (count == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET);
#else
    while (false);
#endif
    return count == 0 ? MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY : count;
}

int tls_unseal(struct tls *tls, const uint8_t *data, size_t size, struct buf *plain)
{
    int count = 0;

    tls->come = data;
    tls->come_bytes = size;
    tls->unsealing = true;
    while (count >= 0) {
        uint8_t *place = buf_reserve(plain, TLS_READ_BYTES);

        count = place ? session_read(tls, place, TLS_READ_BYTES) : MBEDTLS_ERR_SSL_ALLOC_FAILED;
        if (count > 0)
            plain->size += (size_t)count;
    }
    tls->unsealing = false;
    tls->come = NULL;
    if (count == MBEDTLS_ERR_SSL_WANT_READ)
        return 0;
    tls->failed = count != MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY;
    return tls_errno(count);
}

int tls_seal(struct tls *tls, struct buf *plain)
{
    size_t sealed = 0;

    if (tls->failed)
        return 0;
    while (sealed < plain->size) {
        int count = mbedtls_ssl_write(&tls->ssl, plain->data + sealed, plain->size - sealed);

        if (count == MBEDTLS_ERR_SSL_WANT_READ)
            return 0; /* the handshake: nothing was taken */
        if (count < 0)
            return tls_errno(count);
        sealed += (size_t)count;
    }
    buf_clear(plain);
    return 0;
}

void tls_close(struct tls *tls)
{
    if (tls->closed || tls->failed)
        return;
    tls->closed = true;
    (void)mbedtls_ssl_close_notify(
        &tls->ssl); /* a courtesy: the close of the socket says it too */
}

struct buf *tls_sealed(struct tls *tls)
{
    return &tls->sealed;
}
