/* stream_tls.c - certificates of a tls+tcp listener or dialer. */
#include <errno.h>
#include <string.h>

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>

#include "buf.h"
#include "file.h"
#include "stream_nng.h"

#define TLS_FILE_MAX_BYTES (1024u * 1024)
#define TLS_URL_PREFIX "tls+tcp"

DEFINE_CLEANUP(nng_tls_config *, nng_tls_config_free)
DEFINE_CLEANUP(nng_url *, nng_url_free)

bool stream_url_is_tls(const char *url)
{
    return strncmp(url, TLS_URL_PREFIX, strlen(TLS_URL_PREFIX)) == 0;
}

/* PEM text, NUL-terminated. */
static int pem_read(const char *path, struct buf *pem)
{
    int result = file_read(path, TLS_FILE_MAX_BYTES, pem);

    return result == 0 && !buf_text(pem) ? -ENOMEM : result;
}

static int config_add_identity(nng_tls_config *config, const struct stream_tls *tls)
{
    _cleanup_(buf_done)
    struct buf cert = { 0 };
    _cleanup_(buf_done)
    struct buf key = { 0 };
    int result = pem_read(tls->cert_file, &cert);

    if (result == 0)
        result = pem_read(tls->key_file, &key);
    if (result == 0)
        result = stream_errno(
            nng_tls_config_own_cert(config, buf_text(&cert), buf_text(&key), NULL));
    if (key.data)
        explicit_bzero(key.data, key.size);
    return result;
}

static int config_add_ca(nng_tls_config *config, const struct stream_tls *tls)
{
    _cleanup_(buf_done)
    struct buf ca = { 0 };
    int result = pem_read(tls->ca_file, &ca);

    if (result == 0)
        result = stream_errno(nng_tls_config_ca_chain(config, buf_text(&ca), NULL));
    if (result == 0)
        result = stream_errno(nng_tls_config_auth_mode(config, NNG_TLS_AUTH_MODE_REQUIRED));
    return result;
}

static int config_new(nng_tls_mode mode, const struct stream_tls *tls,
                      nng_tls_config **ret_config)
{
    _cleanup_(nng_tls_config_freep)
    nng_tls_config *config = NULL;
    int result = stream_errno(nng_tls_config_alloc(&config, mode));

    if (result == 0)
        result = stream_errno(nng_tls_config_version(config, NNG_TLS_1_2, NNG_TLS_1_3));
    if (result == 0 && tls->cert_file)
        result = config_add_identity(config, tls);
    if (result == 0 && tls->ca_file)
        result = config_add_ca(config, tls);
    if (result == 0)
        *ret_config = take_ptr(config);
    return result;
}

int stream_tls_listener(nng_stream_listener *listener, const struct stream_tls *tls)
{
    _cleanup_(nng_tls_config_freep)
    nng_tls_config *config = NULL;
    int result;

    if (!tls || !tls->cert_file || !tls->key_file)
        return -EINVAL;
    result = config_new(NNG_TLS_MODE_SERVER, tls, &config);
    if (result < 0)
        return result;
    return stream_errno(nng_stream_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, config));
}

int stream_tls_dialer(nng_stream_dialer *dialer, const char *url, const struct stream_tls *tls)
{
    _cleanup_(nng_tls_config_freep)
    nng_tls_config *config = NULL;
    _cleanup_(nng_url_freep)
    nng_url *parts = NULL;
    int result;

    if (!tls || !tls->ca_file || !tls->cert_file != !tls->key_file)
        return -EINVAL; /* without a CA it would trust anyone */
    result = stream_errno(nng_url_parse(&parts, url));
    if (result == 0)
        result = config_new(NNG_TLS_MODE_CLIENT, tls, &config);
    if (result == 0)
        result = stream_errno(nng_tls_config_server_name(config, parts->u_hostname));
    if (result < 0)
        return result;
    return stream_errno(nng_stream_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config));
}
