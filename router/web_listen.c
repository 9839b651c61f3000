/* web_listen.c - see web_listen.h. */
#include "web_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "file.h"
#include "log.h"

#define TOKEN_MIN_BYTES 16u
#define TOKEN_MAX_BYTES 256u
#define TOKEN_FILE_MAX_BYTES 4096u
#define HOST_MAX_BYTES 256u

static int fail(char ret_error[WEB_LISTEN_ERROR_MAX], const char *format, ...) _printf_(2, 3);
static int fail(char ret_error[WEB_LISTEN_ERROR_MAX], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(ret_error, WEB_LISTEN_ERROR_MAX, format, arguments); /* cut is fine */
    va_end(arguments);
    return -1;
}

/* Addresses. */

/* The host of HOST:PORT, brackets removed; false: it is too long or there is none. */
static bool host_of(const char *address, char ret_host[HOST_MAX_BYTES])
{
    const char *colon = strrchr(address, ':');
    size_t size = colon ? (size_t)(colon - address) : 0;

    if (size > 2 && address[0] == '[' && address[size - 1] == ']') {
        address++;
        size -= 2;
    }
    if (size == 0 || size >= HOST_MAX_BYTES)
        return false;
    memcpy(ret_host, address, size);
    ret_host[size] = '\0';
    return true;
}

static bool is_v6_loopback(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET6, host, &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
}

bool web_address_is_loopback(const char *address)
{
    char host[HOST_MAX_BYTES];
    struct in_addr v4;

    if (!host_of(address, host))
        return false;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcmp(host, "localhost") == 0 || is_v6_loopback(host);
}

/* Listeners. */

static bool has_no_ipv6(const char *address, int error)
{
    char host[HOST_MAX_BYTES];

    return (error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT) && host_of(address, host) &&
           is_v6_loopback(host);
}

static int listen_on(struct web_listeners *listeners, const struct web_listen_spec *spec,
                     const char *address, char ret_error[WEB_LISTEN_ERROR_MAX])
{
    char url[HOST_MAX_BYTES + 32];
    int result;

    if (!spec->has_token && !web_address_is_loopback(address))
        return fail(ret_error,
                    "sandbox.listen: %s is reachable from other machines: that needs "
                    "sandbox.auth_token_file",
                    address);
    if (snprintf(url, sizeof(url), "tcp://%s", address) >= (int)sizeof(url))
        return fail(ret_error, "sandbox.listen: %s is no address", address);
    result = stream_listen(spec->loop, url, NULL, spec->accepted, spec->ctx,
                           &listeners->items[listeners->count]);
    if (result < 0 && has_no_ipv6(address, result)) {
        log_event(LOG_INFO, "web_no_ipv6", log_text("address", address));
        return 0;
    }
    if (result == -EADDRINUSE)
        return fail(ret_error, "sandbox.listen: %s is in use by another process", address);
    if (result < 0)
        return fail(ret_error, "sandbox.listen: cannot listen on %s: %s", address,
                    strerror(-result));
    log_event(LOG_INFO, "web_listening", log_text("address", address),
              log_uint("port", stream_listener_port(listeners->items[listeners->count])));
    listeners->count++;
    return 0;
}

int web_listeners_open(struct web_listeners *listeners, const struct web_listen_spec *spec,
                       char ret_error[WEB_LISTEN_ERROR_MAX])
{
    if (spec->addresses->count > WEB_LISTENERS_MAX)
        return fail(ret_error, "sandbox.listen: %zu addresses, at most %u are possible",
                    spec->addresses->count, WEB_LISTENERS_MAX);
    for (size_t i = 0; i < spec->addresses->count; i++) {
        if (listen_on(listeners, spec, spec->addresses->items[i], ret_error) < 0) {
            web_listeners_close(listeners);
            return -1;
        }
    }
    return 0;
}

void web_listeners_close(struct web_listeners *listeners)
{
    while (listeners->count > 0)
        stream_listener_free(listeners->items[--listeners->count]);
}

/* The token. */

/* A secret that everyone on the machine can read is none. */
static int check_mode(const char *path, char ret_error[WEB_LISTEN_ERROR_MAX])
{
    struct stat status;

    if (stat(path, &status) < 0)
        return fail(ret_error, "sandbox.auth_token_file: %s: %s", path, strerror(errno));
    if (status.st_mode & (S_IROTH | S_IWOTH))
        return fail(ret_error, "sandbox.auth_token_file: %s is open to others: chmod o-rw",
                    path);
    return 0;
}

static size_t first_line_size(const char *text)
{
    size_t size = strcspn(text, "\n");

    return size > 0 && text[size - 1] == '\r' ? size - 1 : size;
}

static bool is_token(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return size >= TOKEN_MIN_BYTES && size <= TOKEN_MAX_BYTES;
}

int web_token_read(const char *path, char **ret_token, char ret_error[WEB_LISTEN_ERROR_MAX])
{
    _cleanup_(buf_done)
    struct buf text = { 0 };
    int result;

    if (check_mode(path, ret_error) < 0)
        return -1;
    result = file_read(path, TOKEN_FILE_MAX_BYTES, &text);
    if (result < 0 || !buf_text(&text))
        return fail(ret_error, "sandbox.auth_token_file: %s: %s", path,
                    file_read_problem(result < 0 ? result : -ENOMEM));
    text.size = first_line_size(buf_text(&text));
    if (!is_token((const char *)text.data, text.size))
        return fail(ret_error,
                    "sandbox.auth_token_file: the first line of %s must be %u to %u printable "
                    "ASCII characters without a space",
                    path, TOKEN_MIN_BYTES, TOKEN_MAX_BYTES);
    *ret_token = (char *)buf_take(&text, NULL);
    return *ret_token ? 0 : fail(ret_error, "no memory");
}
